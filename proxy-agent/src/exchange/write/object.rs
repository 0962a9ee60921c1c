//! Objects in request bodies, in the encoding of the client.
//!
//! The agent converts YAML to JSON, and sends protobuf as protobuf. It does not accept CBOR.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use kube_wire::envelope::Envelope;
use kube_wire::media::{BodyType, Encoding};
use kube_wire::{ResourceRequest, Status};
use rewrite::protobuf::ObjectName;
use rewrite::request::{Report, Request};
use rewrite::{Program, Sink};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::exchange::kinds::{group_kind, proto_program};
use crate::exchange::undecided::Undecided;
use crate::exchange::write::yaml::{read_yaml, yaml_to_json};
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use crate::translate::MAX_REQUEST;

/// An object that a client has sent.
pub(crate) enum Object {
    Json(Bytes),
    Protobuf(Bytes),
}

/// The fields of an object in JSON that the agent reads. A duplicate key is an error.
#[derive(Deserialize)]
struct Named {
    metadata: Option<Members<Metadata>>,
}

/// Accepts only a JSON object. The derived `Deserialize` of a structure also accepts an array, which Kubernetes does
/// not.
#[derive(Default)]
struct Members<T>(T);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    generate_name: Option<String>,
}

/// The object in a body.
pub(crate) fn received(call: &Undecided<'_>, body: &Bytes) -> Result<Object, Refusal> {
    let content_type = call.api.content_type();
    if BodyType::of_object(content_type) == Ok(BodyType::Object(Encoding::Yaml)) {
        return read_yaml(call, body).map(Object::Json);
    }
    Object::receive(content_type, body)
}

// === impl Object ===

impl Object {
    /// Reads the body of a create or an update, by its `Content-Type`.
    pub(crate) fn receive(content_type: Option<&str>, body: &Bytes) -> Result<Self, Refusal> {
        match BodyType::of_object(content_type) {
            Ok(BodyType::Object(Encoding::Json)) => Ok(Self::Json(body.clone())),
            Ok(BodyType::Object(Encoding::Yaml)) => yaml_to_json(body).map(Self::Json),
            Ok(BodyType::Object(Encoding::Protobuf)) => Ok(Self::Protobuf(body.clone())),
            Ok(_) => Err(unsupported("this virtual cluster takes request bodies in JSON, YAML and protobuf")),
            Err(error) => Err(Unmapped::refusal(Status::unsupported_media_type(error), DryRunScope::WithoutBody)),
        }
    }

    /// The name in the object.
    pub(crate) fn name(&self) -> Result<ObjectName, Refusal> {
        let bad = |error: String| {
            let status = Status::bad_request(format!("the object's name cannot be read: {error}"));
            Unmapped::refusal(status, DryRunScope::KubeApiserver)
        };
        match self {
            Self::Json(json) => {
                let named: Result<Members<Named>, _> = serde_json::from_slice(json);
                let Members(named) = named.map_err(|error| bad(error.to_string()))?;
                let Members(metadata) = named.metadata.unwrap_or_default();
                Ok(ObjectName {
                    name: metadata.name.unwrap_or_default(),
                    generate_name: metadata.generate_name.unwrap_or_default(),
                })
            }
            Self::Protobuf(body) => ObjectName::of(body).map_err(|error| bad(error.to_string())),
        }
    }

    /// The JSON; `None` for protobuf.
    pub(crate) fn into_json(self) -> Option<Bytes> {
        match self {
            Self::Json(json) => Some(json),
            Self::Protobuf(_) => None,
        }
    }

    /// The object for the host, and a report for further checks. `name` is the name in a refusal.
    pub(crate) fn map(
        &self,
        request: &ResourceRequest<'_>,
        name: &str,
        program: &Program,
        mapper: &Request,
    ) -> Result<(Bytes, Report), Refusal> {
        match self {
            Self::Json(json) => map_json(request, name, program, mapper, json),
            Self::Protobuf(body) => map_protobuf(request, name, mapper, body),
        }
    }
}

// === impl Members ===

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfObject<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OfObject<T> {
            type Value = Members<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Members)
            }
        }

        deserializer.deserialize_map(OfObject(PhantomData))
    }
}

/// The growth of a body with few names, in bytes.
const GROWTH: usize = 256;

/// A mapped body. Host names are longer than virtual names, so a body with many names can grow tenfold. A body that is
/// too long for the host is not built.
struct Mapped {
    text: BytesMut,
    is_too_long: bool,
}

/// Maps JSON, and returns a report for further checks.
pub(crate) fn map_json(
    request: &ResourceRequest<'_>,
    name: &str,
    program: &Program,
    mapper: &Request,
    json: &Bytes,
) -> Result<(Bytes, Report), Refusal> {
    let mut mapped = Mapped::with_room_for(json.len());
    let report = mapper.map(program, json, &mut mapped).map_err(|refusal| refused(request, name, &refusal))?;
    Ok((mapped.finish()?, report))
}

fn map_protobuf(
    request: &ResourceRequest<'_>,
    name: &str,
    mapper: &Request,
    body: &Bytes,
) -> Result<(Bytes, Report), Refusal> {
    // If the body has no valid envelope, the engine refuses it.
    let api_version = Envelope::decode(body).map_or("", |envelope| envelope.api_version);
    let Some(program) = proto_program(request, api_version) else {
        // Custom resources, and versions that are newer than the table.
        return Err(unsupported("objects of this kind and version must be in JSON or YAML"));
    };
    let mut mapped = Mapped::with_room_for(body.len());
    let report = mapper.map_protobuf(program, body, &mut mapped).map_err(|refusal| refused(request, name, &refusal))?;
    Ok((mapped.finish()?, report))
}

fn refused(request: &ResourceRequest<'_>, name: &str, refusal: &rewrite::request::Refusal) -> Refusal {
    Refusal::body(request.group_resource(), group_kind(request), name, refusal)
}

fn unsupported(message: &str) -> Refusal {
    let status = Status::failure(415, kube_wire::status::Reason::UnsupportedMediaType, message);
    Unmapped::refusal(status, DryRunScope::WithoutBody)
}

// === impl Mapped ===

impl Mapped {
    fn with_room_for(body: usize) -> Self {
        Self { text: BytesMut::with_capacity(body + GROWTH), is_too_long: false }
    }

    fn append(&mut self, piece: &[u8]) {
        self.is_too_long |= self.text.len() + piece.len() > MAX_REQUEST;
        if !self.is_too_long {
            self.text.extend_from_slice(piece);
        }
    }

    fn finish(self) -> Result<Bytes, Refusal> {
        if self.is_too_long {
            // The message of the host (`limitedReadBody` in apiserver's `handlers/rest.go`).
            return Err(Status::request_entity_too_large(&format!("limit is {MAX_REQUEST}")).into());
        }
        Ok(self.text.freeze())
    }
}

impl Sink for Mapped {
    fn emit(&mut self, piece: Bytes) {
        self.append(&piece);
    }

    fn emit_range(&mut self, text: &Bytes, range: Range<usize>) {
        self.append(&text[range]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_too_long_for_the_host_is_not_kept() {
        let mut mapped = Mapped::with_room_for(0);
        for _ in 0..MAX_REQUEST / 1024 {
            mapped.emit(vec![b'a'; 1024].into());
        }
        let mut longer = Mapped { text: mapped.text.clone(), is_too_long: false };
        assert_eq!(mapped.finish().unwrap().len(), MAX_REQUEST);
        longer.emit(Bytes::from_static(b"a"));
        assert_eq!(longer.text.len(), MAX_REQUEST);
        assert_eq!(longer.finish().unwrap_err().into_response(None).0.status(), 413);
    }

    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

    fn json(text: &'static str) -> Object {
        Object::receive(None, &Bytes::from(text)).unwrap()
    }

    #[test]
    fn the_encoding_follows_from_the_content_type() {
        let body = Bytes::from("metadata: {name: a}");
        let yaml = Object::receive(Some("application/yaml"), &body).unwrap();
        assert_eq!(yaml.name().unwrap().name, "a");
        assert!(matches!(Object::receive(Some(PROTOBUF), &body), Ok(Object::Protobuf(_))));
        for refused in ["application/cbor", "text/plain"] {
            let refusal = Object::receive(Some(refused), &body).err().unwrap();
            assert_eq!(refusal.into_response(None).0.status(), 415, "{refused}");
        }
    }

    #[test]
    fn an_object_has_one_name_or_none() {
        for (text, name, generate_name) in [
            (r#"{"metadata":{"name":"a"}}"#, "a", ""),
            (r#"{"metadata":{"generateName":"a-","name":""}}"#, "", "a-"),
            (r#"{"metadata":null}"#, "", ""),
            (r#"{"metadata":{"name":null}}"#, "", ""),
            ("{}", "", ""),
        ] {
            let named = ObjectName { name: name.to_owned(), generate_name: generate_name.to_owned() };
            assert_eq!(json(text).name().unwrap(), named, "{text}");
        }
        for text in [
            r#"{"metadata":{"name":"a","name":"b"}}"#,
            r#"{"metadata":{"name":"a"},"metadata":{}}"#,
            r#"{"metadata":{"name":1}}"#,
            // In the order of the fields.
            r#"[{"name":"a"}]"#,
            r#"{"metadata":["a","b"]}"#,
            "[]",
            "",
        ] {
            assert!(json(text).name().is_err(), "{text}");
        }
        assert!(Object::Protobuf(Bytes::from("{}")).name().is_err());
        assert_eq!(Object::Protobuf(Bytes::from("k8s\0\x12\x05\x0a\x03\x0a\x01a")).name().unwrap().name, "a");
    }

    #[test]
    fn protobuf_is_taken_where_its_messages_are_known() {
        use http::Method;
        use kube_wire::{RequestInfo, Target};

        let program = |path: &str, api_version: &str| {
            let info = RequestInfo::parse(&Method::POST, path, None).unwrap();
            let Target::Resource(request) = info.target() else { panic!("{path} is a resource") };
            proto_program(request, api_version).map(|program| program.to_string())
        };
        for (path, api_version, expected) in [
            ("/api/v1/namespaces/a/pods", "v1", Some("v1 Pod")),
            ("/apis/apps/v1/namespaces/a/deployments/b/scale", "autoscaling/v1", Some("autoscaling/v1 Scale")),
            ("/api/v1/namespaces/a/pods/b/eviction", "", Some("policy/v1 Eviction")),
            ("/api/v1/namespaces/a/pods/b/eviction", "policy/v1beta1", Some("policy/v1beta1 Eviction")),
            ("/api/v1/namespaces/a/pods/b/eviction", "policy/v9", None),
            // The path determines the schema. If the object has another kind, the engine refuses it.
            ("/api/v1/namespaces/a/pods", "v2", Some("v1 Pod")),
            ("/apis/example.com/v1/namespaces/a/widgets", "example.com/v1", None),
            ("/api/v1/namespaces/a/pods/b/unheard", "v1", None),
        ] {
            assert_eq!(program(path, api_version).as_deref(), expected, "{path} {api_version}");
        }
    }
}
