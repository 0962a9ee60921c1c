use std::fmt;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_wire::envelope::EnvelopeError;
use kube_wire::proto::{Reader, Value as Wire, Writer};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::guard::{Guard, Toleration};
use crate::request::{NamespaceRules, ProtectedKeys, Request};
use crate::schema::{program_for, proto_program_for};
use crate::view::tests::{guard, mapping};
use crate::{Index, Mapping};

mod hostile;

/// An object of `testdata/protobuf.json`.
struct Sample {
    name: String,
    kind: [String; 3],
    is_namespaced: bool,
    virtual_json: String,
    virtual_proto: Bytes,
    host_json: Value,
    host_proto: Bytes,
    nodes: Vec<String>,
}

/// A message without its schema. Bytes that can be parsed as a message count as one, so that the order of fields does
/// not matter.
#[derive(Clone, PartialEq)]
enum Tree {
    Message(Vec<(u32, Self)>),
    Json(Value),
    Bytes(Vec<u8>),
    Number(u64),
}

static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let samples: Vec<Value> = serde_json::from_str(include_str!("../../../testdata/protobuf.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let proto = |form: &Value| Bytes::from(STANDARD.decode(form["Protobuf"].as_str().unwrap()).unwrap());
    let sample = |sample: &Value| Sample {
        name: text(&sample["Name"]),
        kind: ["Group", "Version", "Kind"].map(|key| text(&sample[key])),
        is_namespaced: sample["Namespaced"] == true,
        virtual_json: text(&sample["Virtual"]["Json"]),
        virtual_proto: proto(&sample["Virtual"]),
        host_json: serde_json::from_str(sample["Host"]["Json"].as_str().unwrap()).unwrap(),
        host_proto: proto(&sample["Host"]),
        nodes: serde_json::from_value(sample["Nodes"].clone()).unwrap(),
    };
    samples.iter().map(sample).collect()
});

impl Sample {
    fn request(&self, mapping: Mapping) -> Request {
        let request = Request::new(mapping).with_guard(guard());
        if self.is_namespaced {
            request.in_namespace("edge".parse().unwrap())
        } else {
            request.with_review_root("atoll-root-ke".parse().unwrap())
        }
    }

    fn map_proto(&self, request: &Request, body: &Bytes) -> Result<(Bytes, Report), Refusal> {
        let [group, version, kind] = &self.kind;
        let mut out: Vec<Bytes> = Vec::new();
        let report = request.map_protobuf(proto_program_for(group, version, kind).unwrap(), body, &mut out)?;
        Ok((out.concat().into(), report))
    }

    fn map_json(&self, request: &Request) -> Result<(Value, Report), Refusal> {
        let [group, version, kind] = &self.kind;
        let mut out: Vec<Bytes> = Vec::new();
        let body = Bytes::from(self.virtual_json.clone());
        let report = request.map(&program_for(group, version, kind), &body, &mut out)?;
        Ok((serde_json::from_slice(&out.concat()).unwrap(), report))
    }
}

/// Fields that are maps in every message of the samples in which they have that form: `PodSpec.nodeSelector`, `labels`
/// and `annotations` of `ObjectMeta`. (`env` of `Container`, a list, has number 7 too; its order is not compared.)
const MAPS: [u32; 3] = [7, 11, 12];

impl Tree {
    fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"{")
            && let Ok(json) = serde_json::from_slice(bytes)
        {
            return Self::Json(json);
        }
        let is_text = std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(char::is_control));
        match fields(bytes) {
            Some(mut fields) if !is_text => {
                fields.sort_by_cached_key(|(number, tree)| {
                    (*number, if MAPS.contains(number) { format!("{tree:?}") } else { String::new() })
                });
                Self::Message(fields)
            }
            _ => Self::Bytes(bytes.to_vec()),
        }
    }

    /// Of an enveloped object.
    fn of_body(body: &[u8]) -> Self {
        Self::of(body.strip_prefix(&MAGIC).unwrap())
    }

    /// The message again, with higher field numbers first.
    fn backwards(&self) -> Vec<u8> {
        match self {
            Self::Message(fields) => {
                let mut message = Writer::new();
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
                for (number, tree) in fields {
                    match tree {
                        Self::Number(value) => message.varint(*number, *value),
                        tree => message.bytes(*number, &tree.backwards()),
                    }
                }
                message.into_bytes()
            }
            Self::Json(value) => value.to_string().into_bytes(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Number(_) => unreachable!("written with its field"),
        }
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(fields) => f.debug_map().entries(fields.iter().map(|(number, tree)| (number, tree))).finish(),
            Self::Json(json) => write!(f, "{json}"),
            Self::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

fn fields(bytes: &[u8]) -> Option<Vec<(u32, Tree)>> {
    let mut reader = Reader::new(bytes);
    let mut fields = Vec::new();
    while let Some(field) = reader.next_field().ok()? {
        let tree = match field.value {
            Wire::Varint(number) => Tree::Number(number),
            Wire::Bytes(bytes) => Tree::of(bytes),
            // Kubernetes has a `double` in one message (`JSONSchemaProps`), which no sample contains.
            Wire::Fixed64(_) | Wire::Fixed32(_) => return None,
        };
        fields.push((field.number, tree));
    }
    (!fields.is_empty()).then_some(fields)
}

#[test]
fn objects_are_mapped_as_by_kubernetes_types() {
    for sample in &*SAMPLES {
        let request = sample.request(mapping());
        let (proto, report) = sample.map_proto(&request, &sample.virtual_proto).unwrap();
        assert_eq!(Tree::of_body(&proto), Tree::of_body(&sample.host_proto), "{}", sample.name);
        assert_eq!(report.nodes, sample.nodes, "{}", sample.name);
        let (json, report) = sample.map_json(&request).unwrap();
        assert_eq!(json, sample.host_json, "{}", sample.name);
        assert_eq!(report.nodes, sample.nodes, "{}", sample.name);
    }
}

#[test]
fn the_order_of_fields_does_not_matter() {
    for sample in &*SAMPLES {
        let mut body = MAGIC.to_vec();
        body.extend(Tree::of_body(&sample.virtual_proto).backwards());
        let (mapped, report) = sample.map_proto(&sample.request(mapping()), &body.into()).unwrap();
        assert_eq!(Tree::of_body(&mapped), Tree::of_body(&sample.host_proto), "{}", sample.name);
        assert_eq!(report.nodes, sample.nodes, "{}", sample.name);
    }
}

#[test]
fn bodies_without_names_are_unchanged() {
    let mut untouched = 0;
    for sample in SAMPLES.iter().filter(|sample| sample.virtual_proto == sample.host_proto) {
        let (mapped, _) = sample.map_proto(&sample.request(mapping()), &sample.virtual_proto).unwrap();
        assert_eq!(mapped, sample.virtual_proto, "{}", sample.name);
        untouched += 1;
    }
    assert!(untouched > 2);
}

#[test]
fn both_encodings_get_the_same_refusals() {
    let conflicting = Arc::new(Guard::new([("location".into(), "hangzhou".into())], [Toleration::of_key("edge")]));
    let mut index = Index::new();
    for host in ["edge-ke", "new-ke"] {
        index.insert_host(host.parse().unwrap());
    }
    let taken = || Mapping::new("ke".parse().unwrap(), Arc::new(index.clone()));
    let rules = || Arc::new(NamespaceRules::new(ProtectedKeys::new(["team".parse().unwrap()])));
    let mut refused = [0; 5];
    for sample in &*SAMPLES {
        let mut cluster_scoped = sample.request(taken());
        cluster_scoped.settings.names.own = None;
        let requests = [
            sample.request(mapping()).with_guard(Arc::clone(&conflicting)),
            sample.request(mapping()).in_namespace("default".parse().unwrap()),
            sample.request(taken()),
            cluster_scoped,
            sample.request(mapping()).with_namespace_rules(rules()),
        ];
        for (number, request) in requests.iter().enumerate() {
            let json = sample.map_json(request).map(|(_, report)| report);
            let proto = sample.map_proto(request, &sample.virtual_proto).map(|(_, report)| report);
            refused[number] += usize::from(json.is_err());
            let texts = [json, proto].map(|result| result.map_err(|refusal| refusal.to_string()));
            assert_eq!(texts[1], texts[0], "{} {number}", sample.name);
        }
    }
    assert!(refused.iter().all(|count| *count > 0), "{refused:?}");
}
