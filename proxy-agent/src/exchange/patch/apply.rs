//! Server-side apply: what an apply has to say of `nodeSelector` and `tolerations`, which are atomic fields and hold the
//! guard.
//!
//! | the apply | what is sent |
//! |---|---|
//! | of something new | with the guard |
//! | names the field | with the guard beside what it says: what is stored is all of it |
//! | of anything else, by the only owner of the field | with the guard alone: leaving the field out would remove it |
//! | of anything else | as it is: this manager must not come to own what it never named |
//!
//! Whoever created the object owns fields that he cannot see. To him who names the selector, that is no conflict.

use std::collections::HashMap;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Status};
use rewrite::{Guard, VirtualNamespace};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::super::Asked;
use super::super::node_ports::Form;
use super::super::plan::As;
use super::last_applied::as_stored;
use super::{GUARDED, LABELLED, Patched, pod_spec, resolve};
use crate::host::{empty, full};
use crate::refusal::Refusal;
use crate::translate::MAX_OBJECT;

/// What the guard's fields are called.
const SELECTOR: &str = "nodeSelector";
const TOLERATIONS: &str = "tolerations";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
    managed_fields: Vec<Entry>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    manager: String,
    operation: String,
    fields_v1: Fields,
}

/// A set of fields, of which only those on the way to the guard are read (`FieldsV1` in apimachinery's
/// `pkg/apis/meta/v1/types.go`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    #[serde(rename = "f:spec")]
    spec: Option<Box<Self>>,
    #[serde(rename = "f:template")]
    template: Option<Box<Self>>,
    #[serde(rename = "f:jobTemplate")]
    job_template: Option<Box<Self>>,
    #[serde(rename = "f:nodeSelector")]
    node_selector: Option<IgnoredAny>,
    #[serde(rename = "f:tolerations")]
    tolerations: Option<IgnoredAny>,
}

/// An object, of which only what is on the way to the guard is read: it may be a hundred times as large as the apply.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part {
    metadata: Metadata,
    spec: Option<Box<Self>>,
    template: Option<Box<Self>>,
    job_template: Option<Box<Self>>,
    node_selector: Option<HashMap<String, String>>,
}

/// The object as it is stored.
struct Live {
    metadata: Metadata,
    /// The keys of its node selector.
    keys: Vec<String>,
    /// Where the specification of its pods is.
    pointer: &'static str,
}

/// An apply as it goes upstream.
pub(super) async fn apply(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    path: &str,
    body: &Bytes,
) -> Result<Patched, Refusal> {
    let json = named(asked, request, asked.yaml(body)?)?;
    let json = asked.with_node_ports(Form::Apply, &as_stored(asked, request, path, json).await?);
    let mapper = asked.apply_mapper(request, namespace).await?;
    let guarded = request.subresource().is_none() && GUARDED.contains(&(request.group(), request.resource()));
    let live = if guarded { live(asked, request, path).await? } else { None };
    let Some(live) = live else {
        return asked.sent(path, full(asked.map(request, &asked.program(request), mapper, &json).await?));
    };
    let options = WriteOptions::parse(asked.info.query())?;
    let manager = &options.field_manager;
    let mapper = mapper.partial();
    let again = asked.is_new_version(&live.metadata.resource_version);
    let guarded = live.in_this_version(live.with_guard(&asked.cluster.guard, manager, parsed(&json)?));
    if let Some(without) = without_selector(request, &json)
        && !options.force
        && live.is_hidden(asked)
        && live.is_owned_by_others(SELECTOR, manager)
    {
        // Whether anything else is in the way, the host says.
        let without = Bytes::from(without.to_string());
        let without = asked.map(request, &asked.program(request), mapper.clone(), &without).await?;
        resolve::try_apply(asked, request, path, without).await?;
        // Then only the hidden field is taken over, in the object that was looked at.
        let mapped = asked.map(request, &asked.program(request), mapper, &guarded).await?;
        let mut query = asked.info.query().borrowed();
        query.set("force", "true");
        let request = asked.upstream(Method::PATCH, &Asked::target(path, &query), asked.acts_as(), full(mapped))?;
        return Ok(Patched { request, again });
    }
    let patched = asked.sent(path, full(asked.map(request, &asked.program(request), mapper, &guarded).await?))?;
    Ok(Patched { again, ..patched })
}

/// An object whose labels make it the cluster's, with its name: an apply need not say it. Where there is metadata, the engine
/// adds the labels. Without them, the host would take them from the object (`prune` in structured-merge-diff's
/// `merge/update.go`).
pub(in crate::exchange) fn named(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    json: Bytes,
) -> Result<Bytes, Refusal> {
    let is_labelled = LABELLED.contains(&(request.group(), request.resource())) || asked.is_renamed();
    let Some(name) = request.path_name().filter(|_| is_labelled) else { return Ok(json) };
    let mut object = parsed(&json)?;
    let Some(metadata) = made_at(&mut object, "/metadata") else { return Ok(json) };
    if metadata.get("name").is_some_and(|own| !own.is_null() && own != "") {
        return Ok(json);
    }
    metadata.insert("name".to_owned(), name.into());
    Ok(object.to_string().into())
}

/// The body of an apply. What cannot be read here may be read by the host: a number that is too large for one is a string in
/// YAML.
fn parsed(json: &[u8]) -> Result<Value, Refusal> {
    let bad = |error: serde_json::Error| Status::bad_request(format!("error decoding YAML: {error}"));
    serde_json::from_slice(json).map_err(|error| bad(error).into())
}

/// In the agent's name: who may apply need not be allowed to read, and nothing of it is shown.
async fn live(asked: &Asked<'_>, request: &ResourceRequest<'_>, path: &str) -> Result<Option<Live>, Refusal> {
    let mut read = asked.upstream(Method::GET, path, As::Agent, empty())?;
    read.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let response = asked.parts.host.send(read).await?;
    if response.status() != StatusCode::OK {
        return Ok(None);
    }
    let unreadable = |error: String| Refusal::Unreadable(error);
    let body = asked.collector().collect(response.into_body(), MAX_OBJECT).await?;
    let object: Part = serde_json::from_slice(&body).map_err(|error| unreadable(error.to_string()))?;
    let pointer = pod_spec(request.resource());
    let pod = object.at(pointer);
    let keys = pod.and_then(|pod| pod.node_selector.as_ref()).map(|selector| selector.keys().cloned().collect());
    Ok(Some(Live { keys: keys.unwrap_or_default(), metadata: object.metadata, pointer }))
}

/// The specification of the pods that an object describes.
fn pod<'v>(request: &ResourceRequest<'_>, object: &'v mut Value) -> Option<&'v mut Map<String, Value>> {
    object.pointer_mut(pod_spec(request.resource()))?.as_object_mut()
}

/// The same apply, saying nothing of the selector; nothing if it does not anyway. What is no JSON is refused elsewhere.
fn without_selector(request: &ResourceRequest<'_>, json: &[u8]) -> Option<Value> {
    let mut object: Value = serde_json::from_slice(json).ok()?;
    pod(request, &mut object)?.remove(SELECTOR).filter(|value| !value.is_null())?;
    Some(object)
}

/// The object at the end of a pointer, made with all that leads there; nothing if something else is in its place.
pub(in crate::exchange) fn made_at<'v>(object: &'v mut Value, pointer: &str) -> Option<&'v mut Map<String, Value>> {
    pointer.split('/').skip(1).try_fold(made(object)?, |at, key| made(at.entry(key).or_insert(Value::Null)))
}

/// The object that a value is, or becomes if it is nothing yet.
fn made(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

// === impl Live ===

impl Live {
    /// Whether the field holds the guard and nothing else: to the cluster's clients it is not there.
    fn is_hidden(&self, asked: &Asked<'_>) -> bool {
        let guard = asked.cluster.node_selector.labels.requirements();
        !self.keys.is_empty() && self.keys.iter().all(|key| guard.iter().any(|guarded| guarded.key() == key))
    }

    /// The same apply by `manager`, with the guard where the table above says so.
    fn with_guard(&self, guard: &Guard, manager: &str, mut object: Value) -> Value {
        // A null is a value, too: it empties the field.
        let named = |field: &str| object.pointer(self.pointer).is_some_and(|pod| pod.get(field).is_some());
        let [selector, tolerations] =
            [SELECTOR, TOLERATIONS].map(|field| named(field) || self.is_only_owned(field, manager));
        if !selector && !tolerations {
            return object;
        }
        let Some(pod) = made_at(&mut object, self.pointer) else { return object };
        if selector && let Some(selector) = made(pod.entry(SELECTOR).or_insert(Value::Null)) {
            for (key, value) in guard.selector() {
                let held = selector.entry(key).or_insert(Value::Null);
                if held.is_null() {
                    *held = value.into();
                }
            }
        }
        // The engine fills a list that is there.
        if tolerations {
            let tolerations = pod.entry(TOLERATIONS).or_insert(Value::Null);
            if tolerations.is_null() {
                *tolerations = Value::Array(Vec::new());
            }
        }
        object
    }

    /// The same apply, to this version of this object and no other: in another one, the applier may be the only owner of
    /// the guard, and a new one would have none. What the client names stays; an empty text names nothing (`hasUID` in
    /// apiserver's `handlers/rest.go`).
    fn in_this_version(&self, mut object: Value) -> Bytes {
        let Metadata { uid, resource_version, .. } = &self.metadata;
        if let Some(metadata) = made_at(&mut object, "/metadata") {
            for (key, value) in [("uid", uid), ("resourceVersion", resource_version)] {
                let named = metadata.entry(key).or_insert(Value::Null);
                if named.is_null() || named == "" {
                    *named = value.as_str().into();
                }
            }
        }
        object.to_string().into()
    }

    fn is_only_owned(&self, field: &str, manager: &str) -> bool {
        self.is_applied_by(field, manager) && !self.is_owned_by_others(field, manager)
    }

    fn is_applied_by(&self, field: &str, manager: &str) -> bool {
        self.is_owned(field, |entry| entry.is_apply_of(manager))
    }

    fn is_owned_by_others(&self, field: &str, manager: &str) -> bool {
        self.is_owned(field, |entry| !entry.is_apply_of(manager))
    }

    fn is_owned(&self, field: &str, who: impl Fn(&Entry) -> bool) -> bool {
        self.metadata.managed_fields.iter().any(|entry| who(entry) && entry.has_field(self.pointer, field))
    }
}

// === impl Entry ===

impl Entry {
    fn is_apply_of(&self, manager: &str) -> bool {
        self.operation == "Apply" && self.manager == manager
    }

    /// Whether it owns this field of the object at the `pointer`. A label may be called like the field.
    fn has_field(&self, pointer: &str, field: &str) -> bool {
        let mut path = pointer.split('/').skip(1);
        path.try_fold(&self.fields_v1, Fields::at).is_some_and(|pod| match field {
            SELECTOR => pod.node_selector.is_some(),
            _ => pod.tolerations.is_some(),
        })
    }
}

// === impl Fields ===

impl Fields {
    fn at(&self, key: &str) -> Option<&Self> {
        match key {
            "spec" => self.spec.as_deref(),
            "template" => self.template.as_deref(),
            _ => self.job_template.as_deref(),
        }
    }
}

// === impl Part ===

impl Part {
    fn at(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |part, key| match key {
            "spec" => part.spec.as_deref(),
            "template" => part.template.as_deref(),
            _ => part.job_template.as_deref(),
        })
    }
}

#[cfg(test)]
mod tests;
