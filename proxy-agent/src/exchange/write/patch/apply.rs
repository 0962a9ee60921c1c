//! Server-side apply: the guard in `nodeSelector` and `tolerations`, which are atomic fields.
//!
//! | the apply | the agent sends |
//! |---|---|
//! | creates the object | the apply with the guard |
//! | contains the field | the apply with the guard added to the field, which the host replaces as a whole |
//! | lacks the field, whose only owner is the manager | the apply with the guard: the host would remove the field |
//! | lacks the field | the unchanged apply, so that the manager does not become an owner of the field |
//!
//! The creator of an object owns the hidden field, too. For a manager that sets the node selector, this is no conflict.

use std::collections::HashMap;

use bytes::Bytes;
use http::{Method, StatusCode};
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Status};
use rewrite::{Guard, VirtualNamespace};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::exchange::host::read::{JSON, collected, read_from_host};
use crate::exchange::kinds::is_guarded;
use crate::exchange::plan::Replan;
use crate::exchange::ports::Form;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::mapped::map_checked;
use crate::exchange::write::namespace::apply_mapper;
use crate::exchange::write::node_ports::with_node_ports;
use crate::exchange::write::patch::last_applied::as_stored;
use crate::exchange::write::patch::patched::{Patched, is_binding, is_labelled, pod_spec, sent_patch};
use crate::exchange::write::patch::resolve;
use crate::exchange::write::yaml::read_yaml;
use crate::refusal::Refusal;
use host_client::full;

/// The fields of the guard.
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

/// A set of fields (`FieldsV1` in apimachinery's `pkg/apis/meta/v1/types.go`). Only those on the path to the guard are
/// read.
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

/// An object. Only the parts on the path to the guard are read, because it may be a hundred times as large as the
/// apply.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part {
    metadata: Metadata,
    spec: Option<Box<Self>>,
    template: Option<Box<Self>>,
    job_template: Option<Box<Self>>,
    node_selector: Option<HashMap<String, String>>,
}

/// The stored object.
struct Live {
    metadata: Metadata,
    /// The keys of its node selector.
    keys: Vec<String>,
    /// The JSON pointer of its pod specification.
    pointer: &'static str,
}

/// Maps an apply for the host.
pub(crate) async fn apply(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    path: &str,
    body: &Bytes,
) -> Result<Patched, Refusal> {
    let json = named(call, request, read_yaml(call, body)?)?;
    let json = with_node_ports(call, Form::Apply, &as_stored(call, request, path, json).await?);
    let mapper = apply_mapper(call, request, namespace).await?;
    let guarded = request.subresource().is_none() && is_guarded(request);
    let live = if guarded { live(call, request, path).await? } else { None };
    let Some(live) = live else {
        return sent_patch(
            call,
            path,
            full(map_checked(call, request, &call.api.program(request), mapper, &json).await?),
        );
    };
    let options = WriteOptions::parse(call.api.info.query())?;
    let manager = &options.field_manager;
    let mapper = mapper.partial();
    let replan = Replan::IfNewerThan(live.metadata.resource_version.clone());
    let guarded = live.in_this_version(live.with_guard(&call.api.cluster.guard, manager, parsed(&json)?));
    let without = without_selector(request, &json)
        .filter(|_| !options.force && live.is_hidden(call) && live.is_owned_by_others(SELECTOR, manager));
    if let Some(without) = &without {
        // The host reports any other conflict.
        let without = Bytes::from(without.to_string());
        let without = map_checked(call, request, &call.api.program(request), mapper.clone(), &without).await?;
        resolve::try_apply(call, request, path, without).await?;
    }
    let mapped = full(map_checked(call, request, &call.api.program(request), mapper, &guarded).await?);
    if without.is_none() {
        return Ok(Patched { replan, ..sent_patch(call, path, mapped)? });
    }
    // Only the hidden field is taken over, and only in the version that was read.
    let mut query = call.api.info.query().borrowed();
    query.set("force", "true");
    let target = upstream::target(path, &query);
    let request = upstream::request(&call.api, Method::PATCH, &target, call.api.acts_as(), mapped)?;
    Ok(Patched { request, replan })
}

/// Adds the name to an object whose labels make it the cluster's, because an apply need not contain the name. The
/// engine adds the labels where there is metadata. Without them, the host would remove them from the object (`prune` in
/// structured-merge-diff's `merge/update.go`).
pub(crate) fn named(call: &Undecided<'_>, request: &ResourceRequest<'_>, json: Bytes) -> Result<Bytes, Refusal> {
    let is_labelled = is_labelled(request) || is_binding(request) || call.api.is_renamed();
    let Some(name) = request.path_name().filter(|_| is_labelled) else { return Ok(json) };
    let mut object = parsed(&json)?;
    let Some(metadata) = made_at(&mut object, "/metadata") else { return Ok(json) };
    if metadata.get("name").is_some_and(|own| !own.is_null() && own != "") {
        return Ok(json);
    }
    metadata.insert("name".to_owned(), name.into());
    Ok(object.to_string().into())
}

/// Parses the body of an apply. The host may accept some bodies that fail here: in YAML, a number that is too large is
/// a string.
fn parsed(json: &[u8]) -> Result<Value, Refusal> {
    let bad = |error: serde_json::Error| Status::bad_request(format!("error decoding YAML: {error}"));
    serde_json::from_slice(json).map_err(|error| bad(error).into())
}

async fn live(call: &Undecided<'_>, request: &ResourceRequest<'_>, path: &str) -> Result<Option<Live>, Refusal> {
    let response = read_from_host(call, path, JSON).await?;
    if response.status() != StatusCode::OK {
        return Ok(None);
    }
    let unreadable = |error: String| Refusal::Unreadable(error);
    let body = collected(call, response).await?;
    let object: Part = serde_json::from_slice(&body).map_err(|error| unreadable(error.to_string()))?;
    let pointer = pod_spec(request.resource());
    let pod = object.at(pointer);
    let keys = pod.and_then(|pod| pod.node_selector.as_ref()).map(|selector| selector.keys().cloned().collect());
    Ok(Some(Live { keys: keys.unwrap_or_default(), metadata: object.metadata, pointer }))
}

/// The pod specification in an object.
fn pod<'v>(request: &ResourceRequest<'_>, object: &'v mut Value) -> Option<&'v mut Map<String, Value>> {
    object.pointer_mut(pod_spec(request.resource()))?.as_object_mut()
}

/// The same apply without the node selector. `None` if it has none, or is not JSON, which is refused elsewhere.
fn without_selector(request: &ResourceRequest<'_>, json: &[u8]) -> Option<Value> {
    let mut object: Value = serde_json::from_slice(json).ok()?;
    pod(request, &mut object)?.remove(SELECTOR).filter(|value| !value.is_null())?;
    Some(object)
}

/// The object at a JSON pointer, created with its parents if necessary. `None` if a value of another type is there.
pub(crate) fn made_at<'v>(object: &'v mut Value, pointer: &str) -> Option<&'v mut Map<String, Value>> {
    pointer.split('/').skip(1).try_fold(made(object)?, |at, key| made(at.entry(key).or_insert(Value::Null)))
}

/// The value as an object. A null becomes an empty object.
fn made(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

// === impl Live ===

impl Live {
    /// Whether the node selector contains only the guard, so that clients do not see it.
    fn is_hidden(&self, call: &Undecided<'_>) -> bool {
        let guard = &call.api.cluster.guard;
        !self.keys.is_empty() && self.keys.iter().all(|key| guard.selector().any(|(guarded, _)| guarded == key))
    }

    /// The same apply by `manager`, with the guard as in the table above.
    fn with_guard(&self, guard: &Guard, manager: &str, mut object: Value) -> Value {
        // A null is a value, too: it clears the field.
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
        // The engine adds the guard to an existing list.
        if tolerations {
            let tolerations = pod.entry(TOLERATIONS).or_insert(Value::Null);
            if tolerations.is_null() {
                *tolerations = Value::Array(Vec::new());
            }
        }
        object
    }

    /// The same apply, limited to this version of this object. In another version, the manager may be the only owner of
    /// the guard, and a new object would have none. Values of the client stay. An empty string counts as absent
    /// (`hasUID` in apiserver's `handlers/rest.go`).
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

    fn is_owned(&self, field: &str, is_owner: impl Fn(&Entry) -> bool) -> bool {
        self.metadata.managed_fields.iter().any(|entry| is_owner(entry) && entry.has_field(self.pointer, field))
    }
}

// === impl Entry ===

impl Entry {
    fn is_apply_of(&self, manager: &str) -> bool {
        self.operation == "Apply" && self.manager == manager
    }

    /// Whether it owns this field of the object at the `pointer`. Other parts, such as labels, may have the same key.
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
