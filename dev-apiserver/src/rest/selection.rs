//! The label and field selectors of lists, watches and deletions of collections.

use kube_wire::Status;
use kube_wire::query::ListOptions;
use kube_wire::selector::{FieldSelector, LabelSelector};
use serde_json::Value;

use crate::kinds::Kind;
use crate::object;

/// Both selectors, parsed.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
}

// === impl Selection ===

impl Selection {
    pub(super) fn parse(kind: &Kind, options: &ListOptions<'_>) -> Result<Self, Status> {
        let labels = options.label_selector.parse().map_err(|error| {
            Status::bad_request(format!("unable to parse labelSelector {:?}: {error}", options.label_selector))
        })?;
        let fields: FieldSelector = options
            .field_selector
            .parse()
            .map_err(|error: kube_wire::selector::FieldSelectorError| Status::bad_request(error.to_string()))?;
        fields.terms().iter().try_for_each(|term| check_field(kind, term.field()))?;
        if !options.shard_selector.is_empty() {
            return Err(Status::bad_request("shardSelector is not supported"));
        }
        Ok(Self { labels, fields })
    }

    /// Whether it selects all objects.
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn selects(&self, object: &Value) -> bool {
        let has = |field: &str, value: &str| is_value(object, field, value);
        object::is_selected(&self.labels, object)
            && self.fields.terms().iter().all(|term| has(term.field(), term.value()) != term.is_negated())
    }
}

/// Refuses a field that the kind cannot be selected by, with the texts of kube-apiserver.
fn check_field(kind: &Kind, field: &str) -> Result<(), Status> {
    let own = own_fields(kind);
    let has_namespace = kind.namespaced || own.is_empty();
    if field == "metadata.name" || has_namespace && field == "metadata.namespace" || own.contains(&field) {
        return Ok(());
    }
    Err(Status::bad_request(match (kind.group, own) {
        // `DefaultMetaV1FieldSelectorConversion` in apimachinery.
        (_, []) => {
            format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
        ("batch", _) => format!("field label {field:?} not supported for {}", kind.kind),
        _ => format!("field label not supported: {field}"),
    }))
}

/// The fields by which a kind can be selected besides name and namespace (`pkg/apis/*/v1/conversion.go`).
fn own_fields(kind: &Kind) -> &'static [&'static str] {
    match (kind.group, kind.resource) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "namespaces") => &["status.phase"],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("batch", "jobs") => &["status.successful"],
        _ => &[],
    }
}

fn is_value(object: &Value, field: &str, wanted: &str) -> bool {
    let field = match field {
        "source" => "source.component",
        "status.successful" => "status.succeeded",
        field => field,
    };
    let value = field.split('.').fold(object, |value, part| &value[part]);
    match value {
        Value::String(text) => text == wanted,
        Value::Null => wanted.is_empty() || wanted == "false" || wanted == "0",
        Value::Bool(value) => wanted == if *value { "true" } else { "false" },
        Value::Number(number) => number.to_string() == wanted,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use serde_json::json;

    fn selects(labels: &str, fields: &str, object: &Value) -> bool {
        let options =
            ListOptions { label_selector: labels.into(), field_selector: fields.into(), ..ListOptions::default() };
        Selection::parse(kinds::of("", "pods"), &options).unwrap().selects(object)
    }

    #[test]
    fn both_selectors_must_match() {
        let pod = json!({"metadata": {"name": "p", "labels": {"app": "a"}}, "spec": {"nodeName": "n"}});
        assert!(selects("app=a", "spec.nodeName=n", &pod));
        assert!(!selects("app=a", "spec.nodeName!=n", &pod));
        assert!(!selects("app=b", "", &pod));
        assert!(selects("", "status.phase=", &pod));
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let options = ListOptions { field_selector: "spec.x=1".into(), ..ListOptions::default() };
        let refused = Selection::parse(kinds::of("", "pods"), &options).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (400, "field label not supported: spec.x"));
        let refused = Selection::parse(kinds::of("", "configmaps"), &options).unwrap_err();
        let message = r#""spec.x" is not a known field selector: only "metadata.name", "metadata.namespace""#;
        assert_eq!((refused.code, refused.message.as_str()), (400, message));
    }
}
