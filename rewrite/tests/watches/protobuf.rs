//! The same events in protobuf (`generated.proto` of apimachinery's meta/v1 and of core/v1).

use kube_wire::Status;
use kube_wire::envelope::Envelope;
use kube_wire::proto::Writer;
use kube_wire::watch::ProtobufFrames;
use serde_json::Value;

/// `WatchEvent`, after its length.
pub(crate) fn frame(event: &Value) -> Vec<u8> {
    let mut fields = vec![(1, text(&event["type"]))];
    if let Some(object) = event.get("object") {
        fields.push((2, message([(1, enveloped(object))])));
    }
    ProtobufFrames::encode(&message(fields)).unwrap()
}

fn enveloped(object: &Value) -> Vec<u8> {
    if object["kind"] == "Status" {
        return Status::from_json(object.to_string().as_bytes()).unwrap().to_protobuf();
    }
    let mut fields = vec![(1, metadata(&object["metadata"]))];
    if let Some(about) = object.get("involvedObject") {
        fields
            .push((2, message([(1, text(&about["kind"])), (2, text(&about["namespace"])), (3, text(&about["name"]))])));
    }
    let raw = message(fields);
    let [api_version, kind] = ["apiVersion", "kind"].map(|key| object[key].as_str().unwrap());
    Envelope { api_version, kind, raw: &raw, ..Envelope::default() }.encode()
}

/// `ObjectMeta`.
fn metadata(metadata: &Value) -> Vec<u8> {
    let texts = [(1, "name"), (3, "namespace"), (6, "resourceVersion")];
    let texts = texts.into_iter().filter_map(|(number, key)| Some((number, text(metadata.get(key)?))));
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let annotations = annotations.map(|(key, value)| (12, message([(1, key.clone().into_bytes()), (2, text(value))])));
    message(texts.chain(annotations))
}

fn message(fields: impl IntoIterator<Item = (u32, Vec<u8>)>) -> Vec<u8> {
    let mut message = Writer::new();
    for (number, inside) in fields {
        message.bytes(number, &inside);
    }
    message.into_bytes()
}

fn text(value: &Value) -> Vec<u8> {
    value.as_str().unwrap().to_owned().into_bytes()
}
