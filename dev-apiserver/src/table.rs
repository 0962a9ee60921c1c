//! Tables (`meta.k8s.io`), which `kubectl get` shows. Common kinds have the columns of kube-apiserver, and all others have
//! name and age.

mod age;
mod cell;
mod column;
mod columns;
mod event;
mod node;
mod other;
mod pod;
mod rbac;
mod service;
mod workload;

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;
use column::Column;
use columns::columns;

/// The part of the object in each row (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// The column definitions of a kind.
pub(crate) fn definitions(kind: &Kind) -> Value {
    columns(kind).iter().map(Column::definition).collect()
}

/// The row of an object.
pub(crate) fn row(kind: &Kind, object: &Value, include: Include) -> Value {
    let cells = cells(kind, object);
    let object = match include {
        Include::Nothing => return json!({"cells": cells, "object": null}),
        Include::Metadata => object::partial(object),
        Include::Object => object.clone(),
    };
    json!({"cells": cells, "object": object})
}

fn cells(kind: &Kind, object: &Value) -> Vec<Value> {
    columns(kind).iter().map(|column| column.cell(object)).collect()
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
