//! What of an access review decides how it is answered.

use kube_wire::Status;
use kube_wire::envelope::{Envelope, EnvelopeError};
use kube_wire::gvr::GroupResource;
use kube_wire::proto::Reader;
use serde::{Deserialize, Deserializer};

use crate::access::paths::PathClass;
use crate::exchange::object::Object;
use crate::refusal::{Ask, Refusal, Unmapped};

/// `spec` of every access review (`k8s.io/api/authorization/v1`).
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Question {
    /// Empty in a review about oneself.
    #[serde(deserialize_with = "null_is_nothing")]
    pub(super) user: String,
    #[serde(deserialize_with = "null_is_nothing")]
    pub(super) groups: Vec<String>,
    #[serde(rename = "resourceAttributes")]
    pub(super) resource: Option<Attributes>,
    #[serde(rename = "nonResourceAttributes")]
    pub(super) path: Option<Path>,
}

/// `resourceAttributes`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Attributes {
    #[serde(deserialize_with = "null_is_nothing")]
    pub(super) verb: String,
    #[serde(deserialize_with = "null_is_nothing")]
    pub(super) group: String,
    #[serde(deserialize_with = "null_is_nothing")]
    pub(super) resource: String,
    #[serde(deserialize_with = "null_is_nothing")]
    pub(super) subresource: String,
}

/// `nonResourceAttributes`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Path {
    #[serde(deserialize_with = "null_is_nothing")]
    pub(super) path: String,
    #[serde(deserialize_with = "null_is_nothing")]
    pub(super) verb: String,
}

#[derive(Deserialize)]
struct Review {
    spec: Option<Question>,
}

// === impl Question ===

impl Question {
    pub(super) fn read(object: &Object) -> Result<Self, Refusal> {
        let bad = |error: String| {
            let status = Status::bad_request(format!("the review cannot be read: {error}"));
            Unmapped::refusal(status, Ask::KubeApiserver)
        };
        match object {
            Object::Json(json) => {
                let review: Review = serde_json::from_slice(json).map_err(|error| bad(error.to_string()))?;
                Ok(review.spec.unwrap_or_default())
            }
            Object::Protobuf(body) => Self::of_protobuf(body).map_err(|error| bad(error.to_string())),
        }
    }

    /// Whether nobody is named, as in a SelfSubjectAccessReview.
    pub(super) fn is_about_self(&self) -> bool {
        self.user.is_empty() && self.groups.is_empty()
    }

    /// The numbers are those of `authorization/v1/generated.proto`; the specifications are alike where they have the
    /// same fields.
    fn of_protobuf(body: &[u8]) -> Result<Self, EnvelopeError> {
        let mut question = Self::default();
        let mut review = Reader::new(Envelope::decode(body)?.raw);
        while let Some(field) = review.next_field()? {
            if field.number != 2 {
                continue;
            }
            let mut spec = review.nested(field.bytes()?)?;
            while let Some(field) = spec.next_field()? {
                match field.number {
                    1 => question.resource = Some(Attributes::of_protobuf(spec.nested(field.bytes()?)?)?),
                    2 => question.path = Some(Path::of_protobuf(spec.nested(field.bytes()?)?)?),
                    3 => field.text()?.clone_into(&mut question.user),
                    4 => question.groups.push(field.text()?.to_owned()),
                    _ => {}
                }
            }
        }
        Ok(question)
    }
}

// === impl Attributes ===

impl Attributes {
    pub(super) fn as_resource(&self) -> GroupResource<'_> {
        GroupResource { group: &self.group, resource: &self.resource }
    }

    fn of_protobuf(mut attributes: Reader<'_>) -> Result<Self, EnvelopeError> {
        let mut found = Self::default();
        while let Some(field) = attributes.next_field()? {
            match field.number {
                2 => field.text()?.clone_into(&mut found.verb),
                3 => field.text()?.clone_into(&mut found.group),
                5 => field.text()?.clone_into(&mut found.resource),
                6 => field.text()?.clone_into(&mut found.subresource),
                _ => {}
            }
        }
        Ok(found)
    }
}

// === impl Path ===

impl Path {
    fn of_protobuf(mut attributes: Reader<'_>) -> Result<Self, EnvelopeError> {
        let mut path = Self::default();
        while let Some(field) = attributes.next_field()? {
            match field.number {
                1 => field.text()?.clone_into(&mut path.path),
                2 => field.text()?.clone_into(&mut path.verb),
                _ => {}
            }
        }
        Ok(path)
    }
}

/// The class of a path as a client writes it, which need not be one that a request can have.
pub(super) fn class(verb: &str, path: &str) -> PathClass {
    let is_clean = path == "/" || path.split('/').skip(1).all(|segment| !matches!(segment, "" | "." | ".."));
    // A slash at the end is common, and is the same path.
    let is_clean = is_clean || path.strip_suffix('/').is_some_and(|path| class(verb, path) != PathClass::Never);
    if is_clean && path.starts_with('/') { PathClass::of(verb, path) } else { PathClass::Never }
}

/// Go takes `null` for an absent value.
fn null_is_nothing<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kube_wire::proto::Writer;

    use super::*;

    fn asked() -> Question {
        Question {
            user: "eve".into(),
            groups: vec!["a".into(), "b".into()],
            resource: Some(Attributes {
                verb: "get".into(),
                group: "apps".into(),
                resource: "deployments".into(),
                subresource: "scale".into(),
            }),
            path: Some(Path { path: "/metrics".into(), verb: "get".into() }),
        }
    }

    #[test]
    fn both_encodings_are_read_alike() {
        let json = r#"{"spec":{"user":"eve","groups":["a","b"],"extra":{"k":["v"]},
            "resourceAttributes":{"verb":"get","group":"apps","resource":"deployments","subresource":"scale","name":"x"},
            "nonResourceAttributes":{"path":"/metrics","verb":"get"}}}"#;
        assert_eq!(Question::read(&Object::Json(Bytes::from(json))).unwrap(), asked());
        let message = |fields: &[(u32, &[u8])]| {
            let mut message = Writer::new();
            for (number, bytes) in fields {
                message.bytes(*number, bytes);
            }
            message.into_bytes()
        };
        let resource = message(&[(2, b"get"), (3, b"apps"), (5, b"deployments"), (6, b"scale"), (7, b"x")]);
        let path = message(&[(1, b"/metrics"), (2, b"get")]);
        let spec = message(&[(1, &resource), (2, &path), (3, b"eve"), (4, b"a"), (4, b"b")]);
        let body = Envelope { raw: &message(&[(2, &spec)]), ..Envelope::default() }.encode();
        assert_eq!(Question::read(&Object::Protobuf(body.into())).unwrap(), asked());
    }

    #[test]
    fn what_is_absent_is_nothing() {
        for text in ["{}", r#"{"spec":null}"#, r#"{"spec":{"user":null,"groups":null,"resourceAttributes":null}}"#] {
            assert_eq!(Question::read(&Object::Json(Bytes::from(text))).unwrap(), Question::default(), "{text}");
        }
        for text in ["[]", r#"{"spec":{"user":1}}"#, r#"{"spec":{"user":"a","user":"b"}}"#] {
            assert!(Question::read(&Object::Json(Bytes::from(text))).is_err(), "{text}");
        }
    }

    #[test]
    fn a_path_is_what_a_request_could_have() {
        for (path, expected) in [
            ("/healthz", PathClass::Public),
            ("/api/", PathClass::Authenticated),
            ("/", PathClass::ByRule),
            ("/api/../metrics", PathClass::Never),
            ("/api//x", PathClass::Never),
            ("api", PathClass::Never),
            ("*", PathClass::Never),
            ("", PathClass::Never),
        ] {
            assert_eq!(class("get", path), expected, "{path}");
        }
    }
}
