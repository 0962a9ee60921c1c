//! Reads a `v1.Toleration` of the configuration (`Toleration` in core/v1/types.go).

use rewrite::guard::Toleration;
use serde_json::Value;

/// Why a value is not a valid toleration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TolerationError {
    /// Not an object.
    #[error("must be an object")]
    NotAnObject,
    /// A field that `v1.Toleration` does not have.
    #[error("unknown field {0:?}")]
    Unknown(String),
    /// A field of another type.
    #[error("{0} has the wrong type")]
    Type(&'static str),
    /// A combination that no API server accepts (`ValidateTolerations` in core/validation).
    #[error("{0}")]
    Invalid(&'static str),
}

/// Reads one toleration; an absent operator is `Equal`.
pub(super) fn parse(value: &Value) -> Result<Toleration, TolerationError> {
    let fields = value.as_object().ok_or(TolerationError::NotAnObject)?;
    let mut toleration = Toleration::of_key("");
    "Equal".clone_into(&mut toleration.operator);
    let text = |value: &Value, name| value.as_str().map(str::to_owned).ok_or(TolerationError::Type(name));
    for (field, value) in fields {
        match field.as_str() {
            "key" => toleration.key = text(value, "key")?,
            "operator" => toleration.operator = text(value, "operator")?,
            "value" => toleration.value = text(value, "value")?,
            "effect" => toleration.effect = text(value, "effect")?,
            "tolerationSeconds" => {
                toleration.seconds = Some(value.as_i64().ok_or(TolerationError::Type("tolerationSeconds"))?);
            }
            _ => return Err(TolerationError::Unknown(field.clone())),
        }
    }
    check(&toleration)?;
    Ok(toleration)
}

/// Checks the values, so that an error appears now and not only when the host refuses the first pod.
fn check(toleration: &Toleration) -> Result<(), TolerationError> {
    let invalid = |reason| Err(TolerationError::Invalid(reason));
    let is_made_of =
        |text: &str, others: &str| text.chars().all(|it| it.is_ascii_alphanumeric() || others.contains(it));
    if !is_made_of(&toleration.key, "-_./") {
        return invalid("key must be the key of a label");
    }
    if !is_made_of(&toleration.value, "-_.") {
        return invalid("value must be the value of a label");
    }
    match toleration.operator.as_str() {
        "Exists" if !toleration.value.is_empty() => invalid("value must be empty when operator is Exists"),
        // Lt and Gt: KEP-5471.
        "Exists" | "Equal" | "Lt" | "Gt" if !toleration.key.is_empty() => effect(toleration),
        "Exists" => effect(toleration),
        "Equal" | "Lt" | "Gt" => invalid("operator must be Exists when key is empty"),
        _ => invalid("operator must be Equal, Exists, Lt or Gt"),
    }
}

fn effect(toleration: &Toleration) -> Result<(), TolerationError> {
    match toleration.effect.as_str() {
        "NoExecute" => Ok(()),
        _ if toleration.seconds.is_some() => {
            Err(TolerationError::Invalid("effect must be NoExecute when tolerationSeconds is set"))
        }
        "" | "NoSchedule" | "PreferNoSchedule" => Ok(()),
        _ => Err(TolerationError::Invalid("effect must be NoSchedule, PreferNoSchedule or NoExecute")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tolerations_of_the_api_server_are_accepted() {
        for value in [
            json!({"key": "node-role.kubernetes.io/edge"}),
            json!({"key": "edge", "value": "yes", "effect": "NoSchedule"}),
            json!({"operator": "Exists"}),
            json!({"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}),
        ] {
            parse(&value).unwrap();
        }
        assert_eq!(parse(&json!({"key": "edge"})).unwrap().operator, "Equal");
    }

    #[test]
    fn tolerations_that_the_api_server_refuses_are_refused() {
        for value in [
            json!([]),
            json!({"keys": "edge"}),
            json!({"key": 1}),
            json!({}),
            json!({"key": "edge", "operator": "Exists", "value": "yes"}),
            json!({"key": "edge", "operator": "exists"}),
            json!({"key": "edge", "effect": "Never"}),
            json!({"key": "ed:ge", "operator": "Exists"}),
            json!({"key": "edge", "value": "a,b"}),
            json!({"key": "edge", "effect": "NoSchedule", "tolerationSeconds": 30}),
        ] {
            parse(&value).unwrap_err();
        }
    }
}
