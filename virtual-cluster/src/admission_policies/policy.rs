//! How policies are written: a policy and its binding, for server-side apply.
//!
//! Fields as in `k8s.io/api/admissionregistration/v1/types.go`. Where a default matters for security, the field is
//! written out, so that each apply restores it.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The label of the policies and their bindings on the host. Existing objects have this key, so it must not change.
pub const LABEL: &str = "atoll.dev/gate";

/// The annotation with a digest of what the agent has applied. Without it, a field that an earlier version has applied, and
/// that this one does not have, would stay.
const APPLIED: &str = "atoll.dev/applied";

/// An object that should be on the host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    /// For server-side apply, with everything that the query needs.
    pub(super) path: String,
    pub(super) body: Value,
}

// === impl Object ===

impl Object {
    /// Whether the stored object needs no write: this version has applied it, and nobody has changed its fields since.
    pub(super) fn is_stored_as(&self, stored: &Value) -> bool {
        ["/metadata/labels", "/metadata/annotations", "/spec"].into_iter().all(|pointer| {
            let stored = stored.pointer(pointer).unwrap_or(&Value::Null);
            self.body.pointer(pointer).is_some_and(|wanted| has(stored, wanted))
        })
    }
}

/// Whether a stored value has all of a wanted one. The API server adds defaults, and may omit what is empty.
fn has(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Null, wanted) => is_empty(wanted),
        (Value::Object(stored), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| has(stored.get(key).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len() && stored.iter().zip(wanted).all(|(stored, wanted)| has(stored, wanted))
        }
        (stored, wanted) => stored == wanted,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// One of the two kinds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Validating,
    Mutating,
}

// === impl Kind ===

impl Kind {
    /// The policy of this name and its binding, in this version of the group.
    pub(super) fn objects(self, version: &str, name: &str, spec: &Value) -> [Object; 2] {
        let binding = match self {
            Self::Validating => json!({"policyName": name, "validationActions": ["Deny"]}),
            Self::Mutating => json!({"policyName": name}),
        };
        let kind = match self {
            Self::Validating => "ValidatingAdmissionPolicy",
            Self::Mutating => "MutatingAdmissionPolicy",
        };
        let [bindings, policies] = self.collections(version);
        [
            object(version, kind, &policies, name, spec),
            object(version, &format!("{kind}Binding"), &bindings, name, &binding),
        ]
    }

    /// The paths of all bindings and of all policies: a binding goes before its policy does.
    pub(super) fn collections(self, version: &str) -> [String; 2] {
        let kind = match self {
            Self::Validating => "validating",
            Self::Mutating => "mutating",
        };
        ["policybindings", "policies"]
            .map(|plural| format!("/apis/admissionregistration.k8s.io/{version}/{kind}admission{plural}"))
    }
}

fn object(version: &str, kind: &str, collection: &str, name: &str, spec: &Value) -> Object {
    // With force, so that the agent becomes the owner of fields that another manager has written.
    let path = format!("{collection}/{name}?fieldManager=proxy-agent&force=true");
    let labels = json!({LABEL: "", "app.kubernetes.io/managed-by": "atoll"});
    let mut body = json!({
        "apiVersion": format!("admissionregistration.k8s.io/{version}"), "kind": kind,
        "metadata": {"name": name, "labels": labels}, "spec": spec,
    });
    let digest = Sha256::digest(body.to_string());
    let digest = digest[..8].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    body["metadata"]["annotations"] = json!({APPLIED: digest});
    Object { path, body }
}

/// A rule for namespaced objects. The host would refuse an empty list of operations.
///
/// A namespaceSelector does not exclude cluster-scoped objects (`MatchNamespaceSelector` in apiserver's
/// `admission/plugin/webhook/predicates/namespace/matcher.go`). The scope does.
pub(super) fn rule(group: &str, resources: &[&str], operations: &[&str]) -> Value {
    scoped("Namespaced", group, resources, operations)
}

/// A rule for cluster-scoped objects: Namespaces or Nodes.
pub(super) fn cluster_rule(resources: &[&str], operations: &[&str]) -> Value {
    scoped("Cluster", "", resources, operations)
}

fn scoped(scope: &str, group: &str, resources: &[&str], operations: &[&str]) -> Value {
    json!({
        "apiGroups": [group], "apiVersions": ["*"], "resources": resources, "operations": operations, "scope": scope,
    })
}

/// A variable of a policy, for the expressions after it.
pub(super) fn variable(name: &str, expression: &str) -> Value {
    json!({"name": name, "expression": expression})
}

/// An expression that must be true, and the message if it is false.
pub(super) fn validation(expression: &str, message: &str) -> Value {
    json!({"expression": expression, "message": message, "reason": "Forbidden"})
}

/// The same with a message from a CEL expression; `message` is the fallback if the expression fails.
pub(super) fn validation_saying(expression: &str, message_expression: &str, message: &str) -> Value {
    let mut validation = validation(expression, message);
    validation["messageExpression"] = Value::from(message_expression);
    validation
}

/// A text as a literal of CEL: JSON's escapes are a part of CEL's (cel-spec, doc/langdef.md, "String and Bytes
/// Values").
pub(super) fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(spec: &Value) -> Object {
        Kind::Validating.objects("v1", "a.atoll.dev", spec).into_iter().next().unwrap()
    }

    #[test]
    fn only_an_object_that_differs_is_written() {
        let spec = json!({
            "failurePolicy": "Fail", "matchConstraints": {"objectSelector": {}, "resourceRules": [{"scope": "*"}]},
            "variables": [], "validations": [{"expression": "true"}],
        });
        let wanted = policy(&spec);
        let mut stored = wanted.body.clone();
        assert!(wanted.is_stored_as(&stored));
        // The API server adds defaults, and omits what is empty.
        stored["metadata"]["labels"]["somebody"] = json!("else's");
        stored["spec"]["validations"][0]["reason"] = json!("Invalid");
        stored["spec"]["matchConstraints"]["matchPolicy"] = json!("Equivalent");
        stored["spec"].as_object_mut().unwrap().remove("variables");
        assert!(wanted.is_stored_as(&stored));
        let changes: [fn(&mut Value); 7] = [
            |stored| stored["spec"]["failurePolicy"] = json!("Ignore"),
            |stored| stored["spec"]["validations"] = json!([]),
            |stored| stored["spec"]["validations"][0]["expression"] = json!("false"),
            |stored| stored["spec"]["matchConstraints"]["resourceRules"] = json!([{"scope": "*"}, {}]),
            |stored| stored["spec"] = Value::Null,
            |stored| stored["metadata"]["labels"][LABEL] = Value::from("other"),
            |stored| stored["metadata"]["annotations"] = Value::Null,
        ];
        for change in changes {
            let mut changed = stored.clone();
            change(&mut changed);
            assert!(!wanted.is_stored_as(&changed), "{changed}");
        }
        // An earlier version has applied one more field.
        let mut earlier = spec;
        earlier["matchConditions"] = json!([{"name": "a", "expression": "false"}]);
        assert!(!wanted.is_stored_as(&policy(&earlier).body));
    }
}
