//! The RBAC of a virtual cluster's own scope: ClusterRoles and ClusterRoleBindings.
//!
//! | object | on the host | written by | if |
//! |---|---|---|---|
//! | ClusterRole `X` | ClusterRole `vc:<cluster>:X` | the agent | the caller holds what it grants |
//! | ClusterRoleBinding `B` | RoleBinding `B` in the root namespace | the agent | the caller may bind that role |
//!
//! A write is first a dry run, which returns the object that the host would store. The agent then [tries](attempt) this
//! object as the caller, so that the host's own rules decide what the caller may grant. The agent writes exactly this
//! object, over the version that was tried. After a concurrent write, it repeats everything.

mod as_tried;
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
use rewrite::protobuf::ObjectName;
use serde_json::Value;
use tokio::time::timeout;
use tunnel::Reservation;

use super::ApiRequest;
use super::body_cost::weight;
use super::host_error::Upstream;
use super::patch::Patched;
use super::plan::{As, group_kind, uri};
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use as_tried::{as_tried, without_managers};
pub(super) use attempt::NOT_HELD;
use caller::reviews::Attributes;
use host_client::{RequestBody, full};
pub(super) use in_force::Written;

/// The group of RBAC's kinds.
pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// The prefix of the names of the agent's own objects.
const RESERVED: &str = "atoll:";

/// The maximum memory of a parsed object, in bytes: half of a virtual cluster's budget for bodies, because its JSON is
/// in memory, too. Small values take many times their length.
const MAX_MEMORY: usize = 8 << 20;

/// The time that a request waits until the agent knows the host's cluster roles.
const ROLES_SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// A write that passed the dry run.
struct Tried {
    request: Request<RequestBody>,
    /// Whether the agent repeats the write after a conflict.
    again: bool,
    /// The object as the host would store it.
    result: Value,
    /// The charge for `result`, which stays in memory during further requests to the host.
    _charge: Reservation,
    /// Whether the write creates the object.
    is_new: bool,
}

impl ApiRequest<'_> {
    /// Waits until the agent knows the roles that every cluster has, which takes a moment after its start.
    pub(super) async fn known_roles(&self) -> Result<(), Refusal> {
        self.outside(timeout(ROLES_SYNC_TIMEOUT, self.cluster.roles().synced())).await.map_err(|_| {
            Status::service_unavailable("the roles of this cluster are not known yet").with_retry_after(1).into()
        })
    }

    /// Maps a create, update or patch of the object at `path` on the host, and sends it as a dry run.
    async fn tried(&self, request: &ResourceRequest<'_>, path: &str, body: &Bytes) -> Result<Tried, Refusal> {
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
                return Err(self.prefer_host_error(request, &place, body, refusal).await);
            }
        };
        // The host would take long to report 60,000 invalid subjects (`aggregate.Error` in apimachinery's
        // `pkg/util/errors` copies the whole text for each error).
        bounded(weight(&upstream.body().bytes()))?;
        let dry = dry_run(&upstream)?;
        let (is_new, text) = self.result(request, dry).await?;
        let memory = weight(&text);
        bounded(memory)?;
        let charge = self.collector().reserve(memory)?;
        let result = serde_json::from_slice(&text).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        let mut tried = Tried { request: upstream, again, result, _charge: charge, is_new };
        if request.verb() == Verb::Patch && self.patch_type()? == BodyType::ApplyYaml {
            // It stays an apply, because a PUT would record the manager's operation as Update. A client's dry run that
            // creates the object stays as it is, because its response would show the version that `as_tried` adds.
            if !is_new || !self.is_dry_run(body)? {
                let apply = as_tried(&tried.request.body().bytes(), &tried.result, is_new)?;
                *tried.request.body_mut() = full(apply);
                tried.again = true;
            }
        } else if !is_new && request.verb() != Verb::Create {
            let Patched { request, again } = self.put(without_managers(text, &tried.result)?, path)?;
            (tried.request, tried.again) = (request, again);
        }
        Ok(tried)
    }

    /// The object that the host would store, as JSON. If the host refuses it, the client gets this refusal.
    async fn result(&self, about: &ResourceRequest<'_>, dry: Request<RequestBody>) -> Result<(bool, Bytes), Refusal> {
        let response = self.send(dry).await?;
        let is_new = response.status() == StatusCode::CREATED;
        if !response.status().is_success() {
            return Err(self.refused(about, response).await);
        }
        if !is_new {
            // The agent writes this result later, and the host does not repeat its warnings then.
            self.warn_like(&response);
        }
        let body = self.collected(response).await?;
        Ok((is_new, body))
    }

    /// Checks the right to create an object that an update or an apply creates (`withAuthorization` in apiserver's
    /// `handlers/update.go`). `host` is the object's host name, and `is_new` is whether the write creates it.
    async fn may_make(&self, request: &ResourceRequest<'_>, host: &str, is_new: bool) -> Result<(), Refusal> {
        if !is_new || request.verb() == Verb::Create {
            return Ok(());
        }
        let create = Attributes { verb: Verb::Create.as_str(), name: host, ..self.attributes(request) };
        Ok(self.outside(self.services.authz.demand(&self.mapping, &self.caller, &create)).await?)
    }

    /// The name in a new object. Names of the agent's own objects are refused.
    fn new_name(&self, request: &ResourceRequest<'_>, body: &Bytes) -> Result<ObjectName, Refusal> {
        let own = self.object(body)?.name()?;
        let name = if own.name.is_empty() { &own.generate_name } else { &own.name };
        if name.starts_with(RESERVED) { Err(reserved(group_kind(request), name)) } else { Ok(own) }
    }
}

fn reserved(kind: GroupKind<'_>, name: &str) -> Refusal {
    let error = FieldError::invalid("metadata.name", name, format!("names that begin with {RESERVED:?} are reserved"));
    Unmapped::refusal(Status::invalid(kind, name, &[error]), DryRunScope::Skip)
}

/// Refuses an object whose parsed form takes too much memory.
fn bounded(memory: usize) -> Result<(), Refusal> {
    if memory <= MAX_MEMORY {
        return Ok(());
    }
    let message =
        format!("this object takes {memory} bytes of memory, and the limit is {MAX_MEMORY}; split it into several");
    Err(Status::request_entity_too_large(&message).into())
}

/// The same request as a dry run.
fn dry_run(write: &Request<RequestBody>) -> Result<Request<RequestBody>, Refusal> {
    let mut query = Query::new(write.uri().query().unwrap_or_default());
    query.set("dryRun", "All");
    let mut dry = Request::new(write.body().again());
    *dry.method_mut() = write.method().clone();
    *dry.uri_mut() = uri(&ApiRequest::target(write.uri().path(), &query))?;
    *dry.headers_mut() = write.headers().clone();
    dry.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    Ok(dry)
}
