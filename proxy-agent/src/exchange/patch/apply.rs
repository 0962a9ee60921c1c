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

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Status};
use rewrite::{Guard, VirtualNamespace};
use serde::Deserialize;
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
    fields_v1: Value,
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
    let guarded = live.with_guard(&asked.cluster.guard, manager, parsed(&json)?);
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
        let json = live.in_this_version(guarded);
        let mapped = asked.map(request, &asked.program(request), mapper, &json).await?;
        let mut query = asked.info.query().borrowed();
        query.set("force", "true");
        let request = asked.upstream(Method::PATCH, &Asked::target(path, &query), asked.acts_as(), full(mapped))?;
        return Ok(Patched { request, again: true });
    }
    // Who gives a field up beside others must not come to be its only owner meanwhile.
    let shares = [SELECTOR, TOLERATIONS]
        .into_iter()
        .any(|field| live.is_applied_by(field, manager) && live.is_owned_by_others(field, manager));
    let guarded = if shares { live.in_this_version(guarded) } else { Bytes::from(guarded.to_string()) };
    let patched = asked.sent(path, full(asked.map(request, &asked.program(request), mapper, &guarded).await?))?;
    Ok(Patched { again: shares, ..patched })
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
    let mut object: Value = serde_json::from_slice(&body).map_err(|error| unreadable(error.to_string()))?;
    let selector = pod(request, &mut object).and_then(|pod| pod.get(SELECTOR)).and_then(Value::as_object);
    let keys = selector.map(|selector| selector.keys().cloned().collect()).unwrap_or_default();
    let metadata = serde_json::from_value(object["metadata"].take()).map_err(|error| unreadable(error.to_string()))?;
    Ok(Some(Live { metadata, keys, pointer: pod_spec(request.resource()) }))
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
fn made_at<'v>(object: &'v mut Value, pointer: &str) -> Option<&'v mut Map<String, Value>> {
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

    /// The same apply by `manager`, to this object and no other, with the guard where the table above says so.
    fn with_guard(&self, guard: &Guard, manager: &str, mut object: Value) -> Value {
        // Where the object is gone, the apply would create one without the guard.
        if let Some(metadata) = made_at(&mut object, "/metadata") {
            metadata.entry("uid").or_insert_with(|| self.metadata.uid.as_str().into());
        }
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

    /// The same apply, if nobody else writes in between. A version that the client names stays.
    fn in_this_version(&self, mut object: Value) -> Bytes {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.entry("resourceVersion").or_insert_with(|| self.metadata.resource_version.as_str().into());
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
        let mut path = pointer.split('/').skip(1).chain([field]);
        path.try_fold(&self.fields_v1, |fields, key| fields.get(format!("f:{key}"))).is_some()
    }
}

#[cfg(test)]
mod tests;
