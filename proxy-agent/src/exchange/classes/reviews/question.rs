//! The parts of an access review that determine how it is answered.

use std::borrow::Cow;
use std::fmt;

use kube_wire::Status;
use kube_wire::envelope::{Envelope, EnvelopeError};
use kube_wire::gvr::{GroupKind, GroupResource};
use kube_wire::proto::Reader;
use kube_wire::status::FieldError;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::exchange::write::object::Object;
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use caller::authz::paths::PathClass;

/// The maximum number of groups in a review.
pub(crate) const MAX_GROUPS: usize = 1000;

/// The question of an access review (`k8s.io/api/authorization/v1`).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Question {
    /// The subject; `None` for the caller.
    pub(crate) subject: Option<Subject>,
    pub(crate) resource: Option<Attributes>,
    pub(crate) path: Option<Path>,
}

/// Whose rights a review asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The rights of the caller. As in kube-apiserver, user and groups of the specification are ignored.
    Caller,
    /// The rights of the user and groups in the specification.
    Named,
}

/// `user` and `groups` of a specification.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Subject {
    #[serde(deserialize_with = "null_is_nothing")]
    pub(crate) user: String,
    #[serde(deserialize_with = "null_is_nothing")]
    groups: Groups,
}

/// The first [`MAX_GROUPS`] groups, and the number of all groups.
#[derive(Debug, Default, PartialEq, Eq)]
struct Groups {
    kept: Vec<String>,
    named: usize,
}

/// The common fields of all specifications.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewedAttributes {
    #[serde(rename = "resourceAttributes")]
    resource: Option<Attributes>,
    #[serde(rename = "nonResourceAttributes")]
    path: Option<Path>,
}

/// `resourceAttributes`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Attributes {
    #[serde(deserialize_with = "null_is_nothing")]
    pub(crate) verb: String,
    #[serde(deserialize_with = "null_is_nothing")]
    pub(crate) group: String,
    #[serde(deserialize_with = "null_is_nothing")]
    pub(crate) resource: String,
    #[serde(deserialize_with = "null_is_nothing")]
    pub(crate) subresource: String,
}

/// `nonResourceAttributes`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Path {
    #[serde(deserialize_with = "null_is_nothing")]
    pub(crate) path: String,
    #[serde(deserialize_with = "null_is_nothing")]
    pub(crate) verb: String,
}

#[derive(Deserialize)]
struct Review<S> {
    spec: Option<S>,
}

// === impl Question ===

impl Question {
    pub(crate) fn read(object: &Object, about: About, kind: GroupKind<'_>) -> Result<Self, Refusal> {
        let bad = |error: String| {
            let status = Status::bad_request(format!("the review cannot be read: {error}"));
            Unmapped::refusal(status, DryRunScope::KubeApiserver)
        };
        let question = match object {
            Object::Json(json) => Self::of_json(json, about).map_err(|error| bad(error.to_string()))?,
            Object::Protobuf(body) => Self::of_protobuf(body, about).map_err(|error| bad(error.to_string()))?,
        };
        match &question.subject {
            Some(Subject { groups: Groups { named, .. }, .. }) if *named > MAX_GROUPS => {
                let error = FieldError::too_many("spec.groups", *named as u64, MAX_GROUPS as u64);
                Err(Unmapped::refusal(Status::invalid(kind, "", &[error]), DryRunScope::Skip))
            }
            _ => Ok(question),
        }
    }

    fn of_json(json: &[u8], about: About) -> Result<Self, serde_json::Error> {
        let Review { spec } = serde_json::from_slice::<Review<ReviewedAttributes>>(json)?;
        let ReviewedAttributes { resource, path } = spec.unwrap_or_default();
        let subject = match about {
            About::Caller => None,
            About::Named => serde_json::from_slice::<Review<Subject>>(json)?.spec,
        };
        Ok(Self { subject: subject.filter(Subject::has_subject), resource, path })
    }

    /// Field numbers as in `authorization/v1/generated.proto`. The specifications have the same numbers for the same
    /// fields.
    fn of_protobuf(body: &[u8], about: About) -> Result<Self, EnvelopeError> {
        let (mut question, mut subject) = (Self::default(), Subject::default());
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
                    3 if about == About::Named => field.text()?.clone_into(&mut subject.user),
                    4 if about == About::Named => subject.groups.add(field.text()?),
                    _ => {}
                }
            }
        }
        question.subject = Some(subject).filter(Subject::has_subject);
        Ok(question)
    }
}

// === impl Subject ===

impl Subject {
    pub(crate) fn groups(&self) -> &[String] {
        &self.groups.kept
    }

    /// The host refuses a review without a user and without groups.
    fn has_subject(&self) -> bool {
        !self.user.is_empty() || self.groups.named > 0
    }
}

// === impl Groups ===

impl Groups {
    fn add(&mut self, group: &str) {
        self.named += 1;
        if self.named <= MAX_GROUPS {
            self.kept.push(group.to_owned());
        }
    }
}

impl<'de> Deserialize<'de> for Groups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;

        impl<'de> Visitor<'de> for Elements {
            type Value = Groups;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of groups")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Groups, A::Error> {
                let mut groups = Groups::default();
                while let Some(group) = elements.next_element::<Cow<'de, str>>()? {
                    groups.add(&group);
                }
                Ok(groups)
            }
        }

        deserializer.deserialize_seq(Elements)
    }
}

// === impl Attributes ===

impl Attributes {
    pub(crate) fn as_resource(&self) -> GroupResource<'_> {
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

/// The class of a path in a review, which need not be a valid path of a request.
pub(crate) fn class(verb: &str, path: &str) -> PathClass {
    let is_clean = path == "/" || path.split('/').skip(1).all(|segment| !matches!(segment, "" | "." | ".."));
    // A slash at the end is common, and means the same path.
    let is_clean = is_clean || path.strip_suffix('/').is_some_and(|path| class(verb, path) != PathClass::Never);
    if is_clean && path.starts_with('/') { PathClass::of(verb, path) } else { PathClass::Never }
}

/// Go treats `null` as absent.
fn null_is_nothing<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kube_wire::proto::Writer;

    use super::*;

    const KIND: GroupKind<'_> = GroupKind { group: "authorization.k8s.io", kind: "SubjectAccessReview" };

    fn expected(about: About) -> Question {
        let groups = Groups { kept: vec!["a".into(), "b".into()], named: 2 };
        Question {
            subject: (about == About::Named).then(|| Subject { user: "eve".into(), groups }),
            resource: Some(Attributes {
                verb: "get".into(),
                group: "apps".into(),
                resource: "deployments".into(),
                subresource: "scale".into(),
            }),
            path: Some(Path { path: "/metrics".into(), verb: "get".into() }),
        }
    }

    fn read_json(text: &str, about: About) -> Result<Question, Refusal> {
        Question::read(&Object::Json(Bytes::copy_from_slice(text.as_bytes())), about, KIND)
    }

    fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut message = Writer::new();
        for (number, bytes) in fields {
            message.bytes(*number, bytes);
        }
        message.into_bytes()
    }

    fn protobuf(spec: &[(u32, &[u8])]) -> Object {
        let raw = message(&[(2, &message(spec))]);
        Object::Protobuf(Envelope { raw: &raw, ..Envelope::default() }.encode().into())
    }

    #[test]
    fn both_encodings_are_read_alike() {
        let json = r#"{"spec":{"user":"eve","groups":["a","b"],"extra":{"k":["v"]},
            "resourceAttributes":{"verb":"get","group":"apps","resource":"deployments","subresource":"scale","name":"x"},
            "nonResourceAttributes":{"path":"/metrics","verb":"get"}}}"#;
        let resource = message(&[(2, b"get"), (3, b"apps"), (5, b"deployments"), (6, b"scale"), (7, b"x")]);
        let path = message(&[(1, b"/metrics"), (2, b"get")]);
        let proto = protobuf(&[(1, &resource), (2, &path), (3, b"eve"), (4, b"a"), (4, b"b")]);
        for about in [About::Named, About::Caller] {
            assert_eq!(read_json(json, about).unwrap(), expected(about));
            assert_eq!(Question::read(&proto, about, KIND).unwrap(), expected(about));
        }
    }

    #[test]
    fn absent_fields_are_empty() {
        for about in [About::Named, About::Caller] {
            for text in ["{}", r#"{"spec":null}"#, r#"{"spec":{"user":null,"groups":null,"resourceAttributes":null}}"#]
            {
                assert_eq!(read_json(text, about).unwrap(), Question::default(), "{text}");
            }
        }
        for text in ["[]", r#"{"spec":{"user":1}}"#, r#"{"spec":{"user":"a","user":"b"}}"#] {
            assert!(read_json(text, About::Named).is_err(), "{text}");
        }
        // What a SelfSubjectAccessReview does not have.
        assert_eq!(read_json(r#"{"spec":{"user":1,"groups":"a"}}"#, About::Caller).unwrap(), Question::default());
    }

    #[test]
    fn groups_are_counted_and_bounded() {
        let groups: Vec<_> = (0..=MAX_GROUPS).map(|number| number.to_string()).collect();
        let json = |groups: &[String]| serde_json::json!({"spec": {"groups": groups}}).to_string();
        let proto = |groups: &[String]| {
            let fields: Vec<(u32, &[u8])> = groups.iter().map(|group| (4, group.as_bytes())).collect();
            protobuf(&fields)
        };
        let most = &groups[..MAX_GROUPS];
        let read = [read_json(&json(most), About::Named), Question::read(&proto(most), About::Named, KIND)];
        for question in read {
            assert_eq!(question.unwrap().subject.unwrap().groups(), most);
        }
        let refused = [read_json(&json(&groups), About::Named), Question::read(&proto(&groups), About::Named, KIND)];
        for refusal in refused {
            let status = refusal.unwrap_err().into_status();
            let expected = "SubjectAccessReview.authorization.k8s.io \"\" is invalid: spec.groups: Too many: 1001: must \
                            have at most 1000 items";
            assert_eq!((status.code, &*status.message), (422, expected));
        }
        assert!(read_json(&json(&groups), About::Caller).unwrap().subject.is_none());
        assert!(Question::read(&proto(&groups), About::Caller, KIND).unwrap().subject.is_none());
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
