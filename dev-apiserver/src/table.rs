//! Objects as rows for `kubectl get` (`meta.k8s.io` Table): the columns of kube-apiserver for the common kinds, name and
//! age for the others.

mod age;
mod columns;
mod other;
mod pod;
mod rbac;
mod workload;

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;
pub(crate) use age::since;
use columns::{Column, columns};

/// What the rows carry of their object (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// Definitions of the columns.
pub(crate) fn definitions(kind: &Kind) -> Value {
    columns(kind).iter().map(Column::definition).collect()
}

/// One object's row.
pub(crate) fn row(kind: &Kind, object: &Value, include: Include) -> Value {
    let cells = cells(kind, object);
    let object = match include {
        Include::Nothing => return json!({"cells": cells, "object": null}),
        Include::Metadata => crate::rest::partial(object),
        Include::Object => object.clone(),
    };
    json!({"cells": cells, "object": object})
}

fn cells(kind: &Kind, object: &Value) -> Vec<Value> {
    columns(kind).iter().map(|column| column.cell(object)).collect()
}

/// The text at a path, or what stands for nothing.
fn text_or(object: &Value, path: &str, nothing: &str) -> Value {
    match object.pointer(path) {
        Some(Value::String(text)) if !text.is_empty() => text.as_str().into(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string().into(),
        _ => nothing.into(),
    }
}

/// `a=b,c=d`
fn pairs(field: &Value) -> String {
    let pairs: Vec<_> = object::texts(field).iter().map(|(key, value)| format!("{key}={value}")).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn every_kind_has_as_many_cells_as_columns() {
        for kind in kinds::all() {
            let definitions = definitions(kind);
            let row = row(kind, &json!({"metadata": {"name": "n"}}), Include::Nothing);
            assert_eq!(definitions.as_array().unwrap().len(), row["cells"].as_array().unwrap().len(), "{}", kind.kind);
            assert!(definitions[0]["name"].is_string());
        }
    }
}
