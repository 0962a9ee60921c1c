//! What is required of a label of nodes, as in `matchExpressions` of a label selector of Kubernetes
//! (`LabelSelectorAsSelector` in apimachinery's `pkg/apis/meta/v1/helpers.go`).

use kube_wire::selector::{LabelSelector, LabelSelectorError, Requirement, Test};
use serde::Deserialize;

/// A valid requirement for one label.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct NodeExpression(Requirement);

/// A requirement as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    key: String,
    operator: Operator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// Why an expression is invalid.
#[derive(Debug, thiserror::Error)]
enum Invalid {
    #[error("`values` must not be empty when the operator is In or NotIn")]
    NoValues,
    #[error("`values` must be empty when the operator is Exists or DoesNotExist")]
    Values,
    #[error(transparent)]
    Label(#[from] LabelSelectorError),
}

// === impl NodeExpression ===

impl NodeExpression {
    /// The key of the label.
    pub fn key(&self) -> &str {
        self.0.key()
    }

    /// Whether a node must have the label.
    pub(super) fn requires_label(&self) -> bool {
        matches!(self.0.test(), Test::In(_) | Test::Exists)
    }

    pub(super) fn selector(&self) -> LabelSelector {
        self.0.clone().into()
    }
}

impl TryFrom<Written> for NodeExpression {
    type Error = Invalid;

    fn try_from(Written { key, operator, values }: Written) -> Result<Self, Invalid> {
        let test = match (operator, values.is_empty()) {
            (Operator::In | Operator::NotIn, true) => return Err(Invalid::NoValues),
            (Operator::Exists | Operator::DoesNotExist, false) => return Err(Invalid::Values),
            (Operator::In, _) => Test::In(values),
            (Operator::NotIn, _) => Test::NotIn(values),
            (Operator::Exists, _) => Test::Exists,
            (Operator::DoesNotExist, _) => Test::DoesNotExist,
        };
        Ok(Self(Requirement::new(&key, test)?))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_are_written_as_kubernetes_writes_them() {
        for (written, expect) in [
            (json!({"key": "a", "operator": "In", "values": ["c", "b", ""]}), "a in (,b,c)"),
            (json!({"key": "a", "operator": "NotIn", "values": ["b"]}), "a notin (b)"),
            (json!({"key": "x.io/a", "operator": "Exists"}), "x.io/a"),
            (json!({"key": "a", "operator": "DoesNotExist", "values": []}), "!a"),
        ] {
            assert_eq!(NodeExpression::deserialize(written).unwrap().selector().to_string(), expect);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (written, expect) in [
            (json!({"key": "a", "operator": "In"}), "must not be empty"),
            (json!({"key": "a", "operator": "NotIn", "values": []}), "must not be empty"),
            (json!({"key": "a", "operator": "Exists", "values": ["b"]}), "must be empty"),
            (json!({"key": "a b", "operator": "Exists"}), "a b"),
            (json!({"key": "a", "operator": "In", "values": ["b c"]}), "b c"),
            (json!({"key": "a", "operator": "Gt", "values": ["1"]}), "unknown variant `Gt`"),
            (json!({"key": "a", "operator": "Exists", "x": 1}), "unknown field `x`"),
        ] {
            let error = NodeExpression::deserialize(written).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        }
    }
}
