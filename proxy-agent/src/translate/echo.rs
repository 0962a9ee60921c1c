//! The object in the error message for a patch that makes it invalid.
//!
//! kube-apiserver quotes the whole object: `patch: Invalid value: "{...}": json: cannot unmarshal ...` (`jsonPatcher`
//! in apiserver's `handlers/patch.go`). This is the host's form, with the guard in it.

use bytes::Bytes;
use kube_wire::Status;
use kube_wire::go_quote::{GoQuoted, unquoted};
use kube_wire::media::Encoding;
use rewrite::view::{Filter, Verdict};
use rewrite::{Program, View};

/// The field of such an error, and the text before the object.
const FIELD: &str = "patch";
const BEFORE: &str = "Invalid value: ";

/// The text in place of an object that cannot be mapped.
const UNREADABLE: &str = "{...}";

/// A Status of the host in virtual names; `None` if the body is no Status.
pub(crate) fn status(view: &View, program: &Program, encoding: Encoding, body: &[u8]) -> Option<Status> {
    let status = match encoding {
        Encoding::Json => Status::from_json(body).ok()?,
        Encoding::Protobuf => Status::from_protobuf(body).ok()?,
        Encoding::Yaml | Encoding::Cbor => return None,
    };
    if let Some(status) = without_echo(view, program, status.clone()) {
        return Some(status);
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    view.object(&Program::default(), Filter::Everything, &status.to_json().into(), &mut pieces).ok()?;
    Status::from_json(&pieces.concat()).ok()
}

/// The Status in virtual names if it quotes an object; `None` otherwise.
pub(super) fn without_echo(view: &View, program: &Program, mut status: Status) -> Option<Status> {
    let details = status.details.as_mut()?;
    let cause = details.causes.iter_mut().find(|cause| cause.field == FIELD)?;
    let (length, object) = unquoted(cause.message.strip_prefix(BEFORE)?)?;
    if !object.starts_with('{') {
        // This is a strategic patch, which Go prints as a map. It has only what the client sent.
        return None;
    }
    let quoted = cause.message[BEFORE.len()..][..length].to_owned();
    let shown = GoQuoted(&shown(view, program, object)).to_string();
    let readable = |text: &str| view.mapping().readable(text).unwrap_or_else(|| text.to_owned());
    let replaced = |message: &str| message.split(&quoted).map(readable).collect::<Vec<_>>().join(&shown);
    cause.message = replaced(&cause.message);
    status.message = replaced(&status.message);
    Some(status)
}

fn shown(view: &View, program: &Program, object: String) -> String {
    let mut pieces: Vec<Bytes> = Vec::new();
    match view.object(program, Filter::Everything, &object.into(), &mut pieces) {
        Ok(Verdict::Shown) => String::from_utf8(pieces.concat()).unwrap_or_else(|_| UNREADABLE.to_owned()),
        _ => UNREADABLE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use caller::testing::ke;
    use kube_wire::gvr::GroupKind;
    use kube_wire::status::FieldError;
    use rewrite::{Guard, schema};

    const OBJECT: &str = r#"{"kind":"Deployment","metadata":{"name":"a","namespace":"edge-ke"},"spec":{"replicas":"x","template":{"spec":{"dnsPolicy":"ClusterFirst","nodeSelector":{"location":"beijing"}}}}}"#;
    const SHOWN: &str = r#"{"kind":"Deployment","metadata":{"name":"a","namespace":"edge"},"spec":{"replicas":"x","template":{"spec":{"dnsPolicy":"ClusterFirst"}}}}"#;

    fn invalid(value: &str, detail: &str) -> Status {
        let kind = GroupKind { group: "", kind: "" };
        Status::invalid(kind, "", &[FieldError::invalid("patch", value, detail)])
    }

    #[test]
    fn the_guard_is_not_quoted() {
        let guard = Guard::new([("location".to_owned(), "beijing".to_owned())], []);
        let view = View::new(ke()).with_guard(Arc::new(guard));
        let program = schema::program_for("apps", "v1", "deployments");
        let detail = "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32";
        let show = |status: Status| {
            let shown = super::status(&view, &program, Encoding::Json, &status.to_json()).unwrap();
            let also = super::status(&view, &program, Encoding::Protobuf, &status.to_protobuf());
            assert_eq!(also.as_ref(), Some(&shown));
            shown
        };
        assert_eq!(show(invalid(OBJECT, detail)), invalid(SHOWN, detail));
        assert_eq!(show(invalid(OBJECT, "in edge-ke")), invalid(SHOWN, "in edge"));
        assert_eq!(show(invalid("map[spec:x]", "in edge-ke")), invalid("map[spec:x]", "in edge"));
        assert_eq!(show(invalid(r#"{"metadata":{"namespace":"#, "")), invalid(UNREADABLE, ""));
        let other = Status::bad_request("no such thing in edge-ke");
        assert_eq!(show(other), Status::bad_request("no such thing in edge"));
    }
}
