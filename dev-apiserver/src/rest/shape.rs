//! The form of objects in responses: the object, its metadata, or rows of a Table.

use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode, header};
use kube_wire::Status;
use kube_wire::media::{Form, NotAcceptable};
use serde::ser::{SerializeMap as _, SerializeSeq as _, SerializeStruct as _};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::request::ApiRequest;
use crate::headers::accepted_forms;
use crate::kinds::Kind;
use crate::object::partial;
use crate::response::{self, Body};
use crate::table::{self, Include};

/// The form that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The whole object.
    Object,
    /// `PartialObjectMetadata`
    Metadata,
    /// Rows of a `Table`.
    Table(Include),
}

/// The metadata of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct ListMeta {
    pub(super) resource_version: u64,
    pub(super) next: Option<String>,
    pub(super) remaining: Option<usize>,
}

/// A list of objects or of their metadata.
pub(super) struct List<'a> {
    kind: &'a Kind,
    shape: Shape,
    meta: &'a ListMeta,
    items: &'a [Arc<Value>],
}

/// A list as a Table.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Table<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: &'a ListMeta,
    column_definitions: Value,
    rows: Vec<Value>,
}

struct Items<'a>(Shape, &'a [Arc<Value>]);
struct Item<'a>(&'a Value);

// === impl Shape ===

impl Shape {
    /// The form that the client requests.
    pub(super) fn requested(request: &ApiRequest<'_>) -> Result<Self, Status> {
        let forms = accepted_forms(request.headers)?;
        let include = match request.query.first("includeObject") {
            Ok(Some(value)) if value == "None" => Include::Nothing,
            Ok(Some(value)) if value == "Object" => Include::Object,
            _ => Include::Metadata,
        };
        let known = forms.into_iter().find_map(|form| match form {
            Form::Object => Some(Self::Object),
            Form::PartialObjectMetadata | Form::PartialObjectMetadataList => Some(Self::Metadata),
            Form::Table => Some(Self::Table(include)),
            Form::ApiGroupDiscoveryList => None,
        });
        known.ok_or_else(|| Status::not_acceptable(NotAcceptable))
    }

    /// One object in this shape.
    pub(super) fn of(self, kind: &Kind, object: &Value) -> Value {
        match self {
            Self::Table(include) => json!({
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
                "columnDefinitions": table::definitions(kind),
                "rows": [table::row(kind, object, include)],
            }),
            Self::Object => object.clone(),
            Self::Metadata => partial(object),
        }
    }
}

/// Responds with one object.
pub(super) fn respond(request: &ApiRequest<'_>, code: StatusCode, object: &Value) -> Result<Response<Body>, Status> {
    let shape = Shape::requested(request)?;
    Ok(deprecated(request.kind, response::json(code, &shape.of(request.kind, object))))
}

/// Responds with a list.
pub(super) fn respond_list(
    request: &ApiRequest<'_>,
    meta: &ListMeta,
    items: &[Arc<Value>],
) -> Result<Response<Body>, Status> {
    let (kind, shape) = (request.kind, Shape::requested(request)?);
    if let Shape::Table(include) = shape {
        let rows: Vec<_> = items.iter().map(|object| table::row(kind, object, include)).collect();
        let table = Table {
            kind: "Table",
            api_version: "meta.k8s.io/v1",
            metadata: meta,
            column_definitions: table::definitions(kind),
            rows,
        };
        return Ok(deprecated(kind, response::json(StatusCode::OK, &table)));
    }
    Ok(deprecated(kind, response::json(StatusCode::OK, &List { kind, shape, meta, items })))
}

/// Adds the warning that kube-apiserver sends with Endpoints since 1.33 (KEP-4974).
fn deprecated(kind: &Kind, mut response: Response<Body>) -> Response<Body> {
    if (kind.group, kind.resource) == ("", "endpoints") {
        let text = "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
        response.headers_mut().insert(header::WARNING, HeaderValue::from_static(text));
    }
    response
}

// === impl Serialize ===

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_struct("List", 4)?;
        match self.shape {
            Shape::Metadata => {
                list.serialize_field("kind", "PartialObjectMetadataList")?;
                list.serialize_field("apiVersion", "meta.k8s.io/v1")?;
            }
            Shape::Object | Shape::Table(_) => {
                list.serialize_field("kind", &format!("{}List", self.kind.kind))?;
                list.serialize_field("apiVersion", &self.kind.api_version())?;
            }
        }
        list.serialize_field("metadata", self.meta)?;
        list.serialize_field("items", &Items(self.shape, self.items))?;
        list.end()
    }
}

impl Serialize for ListMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut meta = serializer.serialize_map(None)?;
        meta.serialize_entry("resourceVersion", &self.resource_version.to_string())?;
        if let Some(next) = &self.next {
            meta.serialize_entry("continue", next)?;
        }
        if let Some(remaining) = self.remaining {
            meta.serialize_entry("remainingItemCount", &remaining)?;
        }
        meta.end()
    }
}

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut items = serializer.serialize_seq(Some(self.1.len()))?;
        for item in self.1 {
            match self.0 {
                Shape::Object | Shape::Table(_) => items.serialize_element(&Item(item))?,
                Shape::Metadata => items.serialize_element(&partial(item))?,
            }
        }
        items.end()
    }
}

/// Items of a list have no `apiVersion` and `kind`, as for all built-in kinds of Kubernetes.
impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.as_object().into_iter().flatten();
        serializer.collect_map(fields.filter(|(field, _)| !matches!(field.as_str(), "apiVersion" | "kind")))
    }
}
