//! The RBAC of a virtual cluster's own scope: ClusterRoles and ClusterRoleBindings.
//!
//! | object | on the host | written by | if |
//! |---|---|---|---|
//! | ClusterRole `X` | ClusterRole `vc:<cluster>:X` | the agent | the caller holds what it grants |
//! | ClusterRoleBinding `B` | RoleBinding `B` in the root namespace | the agent | the caller may bind that role |
//!
//! A write is first a dry run, of which the host makes the object that would be stored; that one is then [tried](attempt)
//! as the caller, so that the host's own rules say what it may grant. What is then written is the object that was tried,
//! in the version that the host tried it on. If somebody else has written in between, it is all done again.

mod attempt;
mod bindings;
mod in_force;
mod roles;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use kube_wire::gvr::GroupKind;
use kube_wire::media::BodyType;
use kube_wire::query::Query;
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::json::weight;
use rewrite::json_patch::JsonPatch;
use rewrite::protobuf::ObjectName;
use serde_json::Value;
use tokio::time::timeout;
use tunnel::Reservation;

use super::Asked;
use super::own_words::Upstream;
use super::patch::{Patched, made_at};
use super::plan::{As, group_kind, uri};
use crate::access::Attributes;
use crate::host::{RequestBody, full};
use crate::refusal::{Ask, Refusal, Unmapped};
use crate::translate::MAX_OBJECT;
pub(super) use in_force::Written;

/// The group of RBAC's kinds.
pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// Names of the agent's own objects begin so.
const RESERVED: &str = "atoll:";

/// The maximum memory that a parsed object takes: half of what a virtual cluster has for bodies, for it must fit beside its
/// JSON. Small parts take many times theirs.
const MAX_MEMORY: usize = 8 << 20;

/// How long a request waits for the agent to know the host's cluster roles.
const PATIENCE: Duration = Duration::from_secs(5);

/// A write that can be made, and what would come of it.
struct Tried {
    request: Request<RequestBody>,
    /// Whether a conflict is ours to try again.
    again: bool,
    /// The object as the host would store it.
    result: Value,
    /// Charges it, for it is there while others are asked.
    _charge: Reservation,
    /// Whether it does not exist yet.
    is_new: bool,
}

impl Asked<'_> {
    /// Waits until the roles are known that every cluster has, which is a moment after the agent has started.
    pub(super) async fn known_roles(&self) -> Result<(), Refusal> {
        timeout(PATIENCE, self.cluster.roles().synced()).await.map_err(|_| {
            Status::service_unavailable("the roles of this cluster are not known yet").with_retry_after(1).into()
        })
    }

    /// Maps a create, update or patch of what is at `path` on the host, and lets the host try it.
    async fn tried(&self, request: &ResourceRequest<'_>, path: &str, body: &Bytes) -> Result<Tried, Refusal> {
        // The host would take long to say what is wrong with each of 60,000 subjects (`aggregate.Error` in apimachinery's
        // `pkg/util/errors` copies the whole text for each error).
        bounded(weight(body))?;
        let mapped = match request.verb() {
            Verb::Patch => self.patch(request, None, path, body).await.map(|patched| (patched.request, patched.again)),
            _ => match self.body(request, None, body).await {
                Ok(body) => {
                    let target = Self::target(path, self.info.query());
                    self.upstream(self.info.method().clone(), &target, As::Agent, body).map(|request| (request, false))
                }
                Err(refusal) => Err(refusal),
            },
        };
        let (upstream, again) = match mapped {
            Ok(mapped) => mapped,
            Err(refusal) => {
                let place = Upstream { path, identity: As::Agent, namespace: None, mapping: &self.mapping };
                return Err(self.in_own_words(request, &place, body, refusal).await);
            }
        };
        let dry = dry_run(&upstream)?;
        let (is_new, text) = self.result(request, dry).await?;
        let memory = weight(&text);
        bounded(memory)?;
        let charge = self.collector().reserve(memory)?;
        let result = serde_json::from_slice(&text).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        let mut tried = Tried { request: upstream, again, result, _charge: charge, is_new };
        if request.verb() == Verb::Patch && self.patch_type()? == BodyType::ApplyYaml {
            // The manager of a PUT updates, and does not apply. What is not stored shows the version that was sent.
            if !is_new || !self.is_dry_run(body)? {
                let apply = as_tried(&tried.request.body().bytes(), &tried.result, is_new)?;
                *tried.request.body_mut() = full(apply);
                tried.again = true;
            }
        } else if !is_new && request.verb() != Verb::Create {
            let Patched { request, again } = self.put(without_managers(text, &tried.result), path)?;
            (tried.request, tried.again) = (request, again);
        }
        Ok(tried)
    }

    /// The object that the host would store, as JSON. If the host refuses it, the client gets this refusal.
    async fn result(&self, about: &ResourceRequest<'_>, dry: Request<RequestBody>) -> Result<(bool, Bytes), Refusal> {
        let response = self.parts.host.send(dry).await?;
        let is_new = response.status() == StatusCode::CREATED;
        if !response.status().is_success() {
            let said = self.status(about, &self.mapping, response).await;
            return Err(said.unwrap_or_else(|| Status::internal_error("the host's response is not a Status")).into());
        }
        if !is_new {
            // What is written is the result, about which the host does not warn again.
            self.warn_like(&response);
        }
        let body = self.collector().collect(response.into_body(), MAX_OBJECT).await?;
        Ok((is_new, body))
    }

    /// An update or an apply that creates its object requires the right to create it too (`withAuthorization` in
    /// apiserver's `handlers/update.go`). `host` is the object's host name, and `is_new` says whether the object is
    /// created.
    async fn may_make(&self, request: &ResourceRequest<'_>, host: &str, is_new: bool) -> Result<(), Refusal> {
        if !is_new || request.verb() == Verb::Create {
            return Ok(());
        }
        let create = Attributes { verb: Verb::Create.as_str(), name: host, ..self.attributes(request) };
        Ok(self.parts.access.demand(&self.mapping, &self.caller, &create).await?)
    }

    /// How a new object calls itself. Names of the agent's own objects are refused.
    fn new_name(&self, request: &ResourceRequest<'_>, body: &Bytes) -> Result<ObjectName, Refusal> {
        let own = self.object(body)?.name()?;
        let name = if own.name.is_empty() { &own.generate_name } else { &own.name };
        if name.starts_with(RESERVED) { Err(reserved(group_kind(request), name)) } else { Ok(own) }
    }
}

fn reserved(kind: GroupKind<'_>, name: &str) -> Refusal {
    let error = FieldError::invalid("metadata.name", name, format!("names that begin with {RESERVED:?} are reserved"));
    Unmapped::refusal(Status::invalid(kind, name, &[error]), Ask::Nobody)
}

/// Refuses an object whose parsed form takes too much.
fn bounded(memory: usize) -> Result<(), Refusal> {
    if memory <= MAX_MEMORY {
        return Ok(());
    }
    let message =
        format!("this object takes {memory} bytes of memory, and the limit is {MAX_MEMORY}; split it into several");
    Err(Status::request_entity_too_large(&message).into())
}

/// An apply that the host refuses if its object is another one than in the dry run that had this `result`, or has changed.
fn as_tried(apply: &[u8], result: &Value, is_new: bool) -> Result<String, Refusal> {
    let mut apply: Value = serde_json::from_slice(apply).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    if let Some(metadata) = made_at(&mut apply, "/metadata") {
        if is_new {
            // A version keeps an apply from changing an object, and not from creating one (`Update` in apiserver's
            // `registry/generic/registry/store.go`). No object has this one, which is that of an empty etcd.
            metadata.insert("resourceVersion".to_owned(), "1".into());
        } else {
            // Without the uid, the apply would create an object that has been deleted since.
            for key in ["uid", "resourceVersion"] {
                metadata.insert(key.to_owned(), result["metadata"][key].clone());
            }
        }
    }
    Ok(apply.to_string())
}

/// The result of a dry run, for a PUT. If it has no managed fields, the client has cleared them; but a PUT that has none
/// keeps those that are stored (`decodeLiveOrNew` and `isResetManagedFields` in apimachinery's
/// `pkg/util/managedfields/internal/fieldmanager.go`).
fn without_managers(text: Bytes, result: &Value) -> Bytes {
    if !result["metadata"]["managedFields"].is_null() {
        return text;
    }
    let clear = Bytes::from_static(br#"[{"op":"add","path":"/metadata/managedFields","value":[{}]}]"#);
    let clear = JsonPatch::parse(&clear).expect("a patch of one operation");
    clear.apply(text.clone()).unwrap_or(text)
}

/// The same request, storing nothing.
fn dry_run(write: &Request<RequestBody>) -> Result<Request<RequestBody>, Refusal> {
    let mut query = Query::new(write.uri().query().unwrap_or_default());
    query.set("dryRun", "All");
    let mut dry = Request::new(write.body().again());
    *dry.method_mut() = write.method().clone();
    *dry.uri_mut() = uri(&Asked::target(write.uri().path(), &query))?;
    *dry.headers_mut() = write.headers().clone();
    dry.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    Ok(dry)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_apply_is_for_what_was_tried() {
        let result = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}});
        let tried = |apply: &Value, is_new: bool| -> Value {
            serde_json::from_str(&as_tried(apply.to_string().as_bytes(), &result, is_new).unwrap()).unwrap()
        };
        for bare in [json!({}), json!({"metadata": null}), json!({"metadata": {}})] {
            assert_eq!(tried(&bare, true), json!({"metadata": {"resourceVersion": "1"}}));
            assert_eq!(tried(&bare, false), json!({"metadata": {"uid": "u", "resourceVersion": "7"}}));
        }
        let named = json!({"metadata": {"name": "a", "resourceVersion": "5"}, "rules": []});
        assert_eq!(tried(&named, true), json!({"metadata": {"name": "a", "resourceVersion": "1"}, "rules": []}));
        assert!(as_tried(b"{", &result, true).is_err());
    }

    #[test]
    fn cleared_managers_stay_cleared() {
        let put = |metadata: Value| -> Value {
            let result = json!({"metadata": metadata, "rules": []});
            let text = without_managers(result.to_string().into(), &result);
            serde_json::from_slice(&text).unwrap()
        };
        let managed = json!({"name": "a", "managedFields": [{"manager": "b"}]});
        assert_eq!(put(managed.clone()), json!({"metadata": managed, "rules": []}));
        let cleared = json!({"metadata": {"name": "a", "managedFields": [{}]}, "rules": []});
        assert_eq!(put(json!({"name": "a"})), cleared);
    }
}
