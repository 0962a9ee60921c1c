//! Reviews in protobuf. Their status is converted to JSON, mapped, and converted back.
//!
//! Field numbers are those of `k8s.io/api/{authentication,authorization}/v1/generated.proto`.

use kube_wire::envelope::{Envelope, EnvelopeError};
use kube_wire::proto::{Field, Reader, WireError, Writer};
use rewrite::Mapping;
use serde_json::{Map, Value, json};

use super::answer::{ReviewAnswer, Ruling};

/// `status` of every review that is mapped.
const STATUS: u32 = 3;
/// `SubjectAccessReviewStatus`.
const ALLOWED: u32 = 1;
const REASON: u32 = 2;
const EVALUATION_ERROR: u32 = 3;
const DENIED: u32 = 4;
/// `TokenReviewStatus`.
const AUTHENTICATED: u32 = 1;
const USER: u32 = 2;
const ERROR: u32 = 3;
const AUDIENCES: u32 = 4;

/// A review that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// The body is not protobuf.
    #[error(transparent)]
    Protobuf(#[from] EnvelopeError),
    /// The user of a token is invalid.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The same as [`apply`](super::apply) for protobuf.
pub(crate) fn apply(answer: &ReviewAnswer, mapping: &Mapping, body: &[u8]) -> Result<Vec<u8>, Unread> {
    let envelope = Envelope::decode(body)?;
    let is_token = answer.ruling == Ruling::Token;
    // Other reviews have no status, or one that needs no change.
    if !is_token && !envelope.kind.ends_with("SubjectAccessReview") {
        return Ok(body.to_vec());
    }
    let mut review = Writer::new();
    let mut status = json!({});
    each(envelope.raw, |field| {
        if field.number == STATUS {
            let message = field.bytes()?;
            status = if is_token { token_status(message)? } else { access_status(message)? };
        } else {
            review.raw(&envelope.raw[field.span.clone()]);
        }
        Ok(())
    })?;
    answer.judge(mapping, &mut status)?;
    review.bytes(STATUS, &if is_token { write_token_status(&status) } else { write_access_status(&status) });
    Ok(Envelope { raw: &review.into_bytes(), ..envelope }.encode())
}

fn access_status(message: &[u8]) -> Result<Value, WireError> {
    let mut status = Map::new();
    each(message, |field| {
        match field.number {
            ALLOWED => drop(status.insert("allowed".to_owned(), (field.varint()? != 0).into())),
            REASON => drop(status.insert("reason".to_owned(), field.text()?.into())),
            EVALUATION_ERROR => drop(status.insert("evaluationError".to_owned(), field.text()?.into())),
            DENIED => drop(status.insert("denied".to_owned(), (field.varint()? != 0).into())),
            _ => {}
        }
        Ok(())
    })?;
    Ok(status.into())
}

fn write_access_status(status: &Value) -> Vec<u8> {
    let mut message = Writer::new();
    message.varint(ALLOWED, (status["allowed"] == true).into());
    message.bytes(REASON, text(&status["reason"]));
    message.bytes(EVALUATION_ERROR, text(&status["evaluationError"]));
    message.varint(DENIED, (status["denied"] == true).into());
    message.into_bytes()
}

fn token_status(message: &[u8]) -> Result<Value, WireError> {
    let mut status = json!({"user": {}});
    let mut audiences = Vec::new();
    each(message, |field| {
        match field.number {
            AUTHENTICATED => status["authenticated"] = (field.varint()? != 0).into(),
            USER => status["user"] = user(field.bytes()?)?,
            ERROR => status["error"] = field.text()?.into(),
            AUDIENCES => audiences.push(field.text()?),
            _ => {}
        }
        Ok(())
    })?;
    status["audiences"] = json!(audiences);
    Ok(status)
}

/// `UserInfo`.
fn user(message: &[u8]) -> Result<Value, WireError> {
    let (mut user, mut groups, mut extra) = (json!({}), Vec::new(), Map::new());
    each(message, |field| {
        match field.number {
            1 => user["username"] = field.text()?.into(),
            2 => user["uid"] = field.text()?.into(),
            3 => groups.push(field.text()?),
            4 => {
                let (mut key, mut values) = (String::new(), Vec::new());
                each(field.bytes()?, |entry| {
                    match entry.number {
                        1 => entry.text()?.clone_into(&mut key),
                        // `ExtraValue`.
                        2 => each(entry.bytes()?, |item| {
                            values.push(item.text()?.to_owned());
                            Ok(())
                        })?,
                        _ => {}
                    }
                    Ok(())
                })?;
                extra.insert(key, json!(values));
            }
            _ => {}
        }
        Ok(())
    })?;
    user["groups"] = json!(groups);
    user["extra"] = extra.into();
    Ok(user)
}

fn write_token_status(status: &Value) -> Vec<u8> {
    let user = &status["user"];
    let mut written = Writer::new();
    written.bytes(1, text(&user["username"]));
    written.bytes(2, text(&user["uid"]));
    for group in user["groups"].as_array().into_iter().flatten() {
        written.bytes(3, text(group));
    }
    for (key, values) in user["extra"].as_object().into_iter().flatten() {
        let mut items = Writer::new();
        for value in values.as_array().into_iter().flatten() {
            items.bytes(1, text(value));
        }
        let mut entry = Writer::new();
        entry.bytes(1, key.as_bytes());
        entry.bytes(2, &items.into_bytes());
        written.bytes(4, &entry.into_bytes());
    }
    let mut message = Writer::new();
    message.varint(AUTHENTICATED, (status["authenticated"] == true).into());
    message.bytes(USER, &written.into_bytes());
    message.bytes(ERROR, text(&status["error"]));
    for audience in status["audiences"].as_array().into_iter().flatten() {
        message.bytes(AUDIENCES, text(audience));
    }
    message.into_bytes()
}

fn text(value: &Value) -> &[u8] {
    value.as_str().unwrap_or_default().as_bytes()
}

fn each<'m>(message: &'m [u8], mut read: impl FnMut(&Field<'m>) -> Result<(), WireError>) -> Result<(), WireError> {
    let mut reader = Reader::new(message);
    while let Some(field) = reader.next_field()? {
        read(&field)?;
    }
    Ok(())
}

impl From<WireError> for Unread {
    fn from(error: WireError) -> Self {
        Self::Protobuf(error.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rewrite::Index;
    use rewrite::request::OriginalAttributes;

    use super::*;

    fn mapping() -> Mapping {
        let mut index = Index::new();
        index.insert("edge-ke".parse().unwrap(), "ke".parse().unwrap(), "edge".parse().unwrap()).unwrap();
        index.insert_host("kube-system".parse().unwrap());
        Mapping::new("ke".parse().unwrap(), Arc::new(index))
    }

    /// The status of the answer to a review of this kind, as JSON. Checks that the rest of the answer is unchanged.
    fn answered(ruling: Ruling, kind: &str, status: &Value) -> Value {
        let is_token = ruling == Ruling::Token;
        let answer = ReviewAnswer {
            ruling,
            root: "atoll-root-ke".parse().unwrap(),
            about: OriginalAttributes::default(),
            host_tokens: None,
        };
        let mut review = Writer::new();
        review.bytes(1, b"metadata");
        review.bytes(2, b"spec");
        let rest = review.clone().into_bytes();
        review.bytes(STATUS, &if is_token { write_token_status(status) } else { write_access_status(status) });
        let raw = review.into_bytes();
        let body = Envelope { api_version: "v1", kind, raw: &raw, ..Envelope::default() }.encode();
        let answered = apply(&answer, &mapping(), &body).unwrap();
        let envelope = Envelope::decode(&answered).unwrap();
        let mut found = json!({});
        each(envelope.raw, |field| {
            if field.number == STATUS {
                let message = field.bytes()?;
                found = if is_token { token_status(message)? } else { access_status(message)? };
            }
            Ok(())
        })
        .unwrap();
        assert!(envelope.raw.starts_with(&rest));
        found
    }

    #[test]
    fn access_is_judged_as_in_json() {
        let status = |allowed: bool, denied: bool, reason: &str| json!({"allowed": allowed, "denied": denied, "reason": reason, "evaluationError": ""});
        let review = |ruling, given: &Value| answered(ruling, "SelfSubjectAccessReview", given);
        let (yes, no) = (status(true, false, "r"), status(false, false, "r"));
        assert_eq!(review(Ruling::Host, &yes), yes);
        assert_eq!(review(Ruling::Agent(false), &yes), status(false, false, ""));
        assert_eq!(review(Ruling::Agent(true), &no), status(true, false, ""));
        assert_eq!(review(Ruling::Withheld("w"), &yes), status(false, true, "w"));
        assert_eq!(review(Ruling::Withheld("w"), &no), no);
        let by = |binding: &str| status(true, false, &format!(r#"RBAC: allowed by {binding} of ClusterRole "a""#));
        let host = by(r#"RoleBinding "atoll:crb:admin/edge-ke""#);
        assert_eq!(review(Ruling::Host, &host), by(r#"ClusterRoleBinding "admin""#));
        // It has a status of another form, which is not changed.
        assert_eq!(answered(Ruling::Host, "SelfSubjectRulesReview", &host), host);
    }

    #[test]
    fn tokens_are_judged_as_in_json() {
        let status = |user: &str, group: &str| {
            let user = json!({"username": user, "uid": "u", "groups": [group, "system:authenticated"], "extra": {"k": ["a", "b"]}});
            json!({"authenticated": true, "user": user, "error": "", "audiences": ["x"]})
        };
        let account = |namespace: &str| {
            status(
                &format!("system:serviceaccount:{namespace}:default"),
                &format!("system:serviceaccounts:{namespace}"),
            )
        };
        let review = |given: &Value| answered(Ruling::Token, "TokenReview", given);
        assert_eq!(review(&account("edge-ke")), account("edge"));
        let nobody = review(&account("kube-system"));
        assert_eq!((&nobody["authenticated"], &nobody["error"]), (&json!(false), &json!("invalid bearer token")));
    }
}
