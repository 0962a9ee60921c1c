//! The OpenAPI documents that kubectl needs. They have the kinds and the parameters `fieldValidation` and `dryRun`, but
//! no fields. As they have no merge keys, kubectl computes patches from the types that are compiled into it.

use kube_wire::proto::Writer;
use serde_json::{Map, Value, json};

use crate::kinds::{self, Handling};

const TITLE: &str = "dev-apiserver";

/// The media type of version 2 in gnostic's protobuf.
pub(crate) const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `GET /openapi/v2` in JSON, without any kind.
pub(crate) fn v2() -> Value {
    json!({"swagger": "2.0", "info": {"title": TITLE, "version": env!("CARGO_PKG_VERSION")}, "paths": {}})
}

/// The same in protobuf (`openapi_v2.Document` of google/gnostic-models). kubectl requests it to validate a List, and does
/// not validate kinds that the document does not have.
pub(crate) fn v2_protobuf() -> Vec<u8> {
    let mut info = Writer::new();
    info.bytes(1, TITLE.as_bytes());
    info.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
    let mut document = Writer::new();
    document.bytes(1, b"2.0");
    document.bytes(2, &info.into_bytes());
    document.into_bytes()
}

/// `GET /openapi/v3`
pub(crate) fn index() -> Value {
    let paths: Map<String, Value> = kinds::groups()
        .map(|(group, version)| {
            let path = path(group, version);
            let url = format!("/openapi/v3/{path}?hash={}", env!("CARGO_PKG_VERSION"));
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

/// `GET /openapi/v3/apis/GROUP/VERSION`
pub(crate) fn document(group: &str, version: &str) -> Option<Value> {
    let kinds: Vec<_> = kinds::in_group(group, version).collect();
    if kinds.is_empty() {
        return None;
    }
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for kind in kinds {
        let below = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
        let collection = format!("/{}/{below}{}", path(group, version), kind.resource);
        let gvk = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        paths.insert(collection.clone(), json!({"post": operation("post", &gvk)}));
        if kind.handling != Handling::Review {
            let item = json!({"put": operation("put", &gvk), "patch": operation("patch", &gvk)});
            paths.insert(format!("{collection}/{{name}}"), item);
        }
        schemas.insert(
            format!("dev.{}.{}", kind.version, kind.kind),
            json!({
                "type": "object",
                "description": format!("{} (dev-apiserver knows no fields)", kind.kind),
                "x-kubernetes-group-version-kind": [gvk],
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}},
            }),
        );
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": TITLE, "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn operation(action: &str, gvk: &Value) -> Value {
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    json!({
        "parameters": [parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation")],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    })
}
