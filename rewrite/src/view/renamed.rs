//! Cluster-scoped custom objects, with their names in the virtual cluster.
//!
//! As for a ClusterRole, the label and a matching name determine whether an object is visible.

use super::role::Role;
use crate::json::{Cursor, Edits, Malformed, Outcome};
use crate::name::{CLUSTER_LABEL, ClusterName, HIDDEN_PREFIX};

/// `metadata.labels`, which have the same meaning on the host. Records the one that assigns the object to `cluster`.
pub(super) fn labels(
    object: &mut Role,
    cluster: &ClusterName,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<Outcome, Malformed> {
    if cursor.peek()? != b'{' {
        return cursor.skip().map(|()| Outcome::Keep);
    }
    let extent = cursor.object(edits, |cursor, _, key| {
        let decoded = key.decode();
        if decoded == CLUSTER_LABEL && cursor.peek()? == b'"' {
            if cursor.string()?.is(cluster.as_str()) {
                object.note_label();
            }
        } else {
            cursor.skip()?;
        }
        Ok::<_, Malformed>(if decoded.starts_with(HIDDEN_PREFIX) { Outcome::Remove } else { Outcome::Keep })
    })?;
    Ok(if extent.removed > 0 && extent.kept == 0 { Outcome::Remove } else { Outcome::Keep })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use serde_json::{Value, json};

    use crate::View;
    use crate::schema::{program_of_any, program_of_renamed};
    use crate::view::tests::mapping;
    use crate::view::{Filter, Verdict};

    fn view() -> View {
        let kinds = [("example.com".to_owned(), "Widget".to_owned())].into_iter().collect();
        View::new(mapping().with_renamed_kinds(Arc::new(kinds)).with_requested_object("asked"))
    }

    fn shown(object: &Value) -> Option<Value> {
        let body = Bytes::from(object.to_string());
        let mut out: Vec<Bytes> = Vec::new();
        let verdict = view().object(&program_of_renamed(), Filter::ByRole, &body, &mut out).unwrap();
        (verdict == Verdict::Shown).then(|| serde_json::from_slice(&out.concat()).unwrap())
    }

    fn widget(name: &str, labels: &Value) -> Value {
        json!({"kind": "Widget", "metadata": {"name": name, "labels": labels}, "spec": {"name": "a.ke"}})
    }

    #[test]
    fn label_and_name_agree() {
        let own = json!({"a": "b", "atoll.dev/virtual-cluster": "ke"});
        assert_eq!(shown(&widget("a.ke", &own)), Some(widget("a", &json!({"a": "b"}))));
        let other = json!({"a": "b", "atoll.dev/virtual-cluster": "hz"});
        for (name, labels) in [("a.hz", &own), ("a", &own), ("a.ke", &other), ("a.ke", &json!({"a": "b"}))] {
            assert_eq!(shown(&widget(name, labels)), None, "{name} {labels}");
        }
        let bare = shown(&widget("a.ke", &json!({"atoll.dev/virtual-cluster": "ke"}))).unwrap();
        assert!(bare["metadata"].get("labels").is_none(), "{bare}");
    }

    #[test]
    fn references_contain_the_virtual_name() {
        let reference = |kind: &str, name: &str| json!({"apiVersion": "example.com/v1", "kind": kind, "name": name});
        let object = |references: Value| json!({"metadata": {"ownerReferences": references}});
        let body =
            object(json!([reference("Widget", "a.ke"), reference("Other", "a.ke"), reference("Widget", "a.hz")]));
        let mut out: Vec<Bytes> = Vec::new();
        view().object(&program_of_any(), Filter::Everything, &body.to_string().into(), &mut out).unwrap();
        let expected =
            object(json!([reference("Widget", "a"), reference("Other", "a.ke"), reference("Widget", "host:a.hz")]));
        assert_eq!(serde_json::from_slice::<Value>(&out.concat()).unwrap(), expected);
    }

    #[test]
    fn a_status_names_the_requested_object() {
        let status = |name: &str, word: &str| {
            json!({
                "kind": "Status", "apiVersion": "v1", "details": {"name": name, "kind": "widgets"},
                "message": format!("widgets.example.com \"{word}\" not found, {word}."),
            })
        };
        let mut out: Vec<Bytes> = Vec::new();
        let body = Bytes::from(status("asked.ke", "asked.ke").to_string());
        view().object(&program_of_renamed(), Filter::ByRole, &body, &mut out).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&out.concat()).unwrap(), status("asked", "asked"));
        for other in ["unasked.ke", "asked.ke-1", "asked.kerosene"] {
            let body = Bytes::from(status(other, other).to_string());
            let mut out: Vec<Bytes> = Vec::new();
            view().object(&program_of_renamed(), Filter::ByRole, &body, &mut out).unwrap();
            assert_eq!(out.concat(), body);
        }
    }
}
