//! Objects that virtual clusters share (`virtual_cluster::shared`), read and written through one cluster.
//!
//! | request | on the host, as the agent |
//! |---|---|
//! | read | unchanged; the response shows the overlay, and selectors match the overlay |
//! | create or apply of an object that does not exist | a dry run, then POST with the overlay |
//! | create or apply of an object of others | a dry run; PUT of the overlay if the specification is the same |
//! | update, patch | a dry run; PUT of the overlay, and of the rest if that is [agreed](virtual_cluster::shared::Agreement) |
//! | delete | PUT without the overlay; DELETE if no other cluster has one |
//! | deletecollection | the same for each selected object; then a list |
//! | update, patch of a definition's status | a dry run; PUT if no other cluster has the definition |
//!
//! Every write has the resourceVersion that was read. After a conflict, the request is planned again.
//!
//! Reading order: here, `wanted` (what a client wants), `write`, `stored`, `leave`, `collection`, `status`.

mod advertised;
mod applied;
mod collection;
mod defined;
mod leave;
mod names;
mod status;
mod stored;
mod wanted;
mod write;

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use kube_wire::media::BodyType;
use kube_wire::query::{ListOptions, Query, WriteOptions};
use kube_wire::selector::{LabelSelector, LabelSelectorError};
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::field_manager;
use rewrite::name::MANAGER_PREFIX;
use rewrite::view::Filter;
use serde_json::{Map, Value};

pub(super) use advertised::Advertised;

use super::ApiRequest;
use super::body::{Body, content_type};
use super::body_cost::weight;
use super::cluster_scoped::forbidden;
use super::host_error::Upstream;
use super::patch::{MAX_LIVE, too_many_parts};
use super::plan::{As, Plan};
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::api::Api;
use host_client::collect::MAX_OBJECT;
use host_client::{HostBody, RequestBody, empty, full};
use virtual_cluster::policy::{self, Class, Custom};
use virtual_cluster::share::large_objects::Size;
use virtual_cluster::shared::{HostObject, Kind};

/// The field manager of an unknown client (`buildmanagerinfo.go` in apimachinery's `util/managedfields`).
const UNKNOWN_MANAGER: &str = "unknown";

/// The kind of object that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// An object of a built-in kind.
    Kind(Kind),
    /// A custom object.
    Custom,
}

impl ApiRequest<'_> {
    /// Handles a request that RBAC in the root namespace allows.
    pub(super) async fn shared(&self, request: &ResourceRequest<'_>, body: &Body) -> Result<Plan, Refusal> {
        let place = request.path().build();
        let planned = match self.writes_shared(request).await? {
            None => self.read_shared(request),
            Some(_) if request.subresource().is_some() => self.write_status(request, body).await,
            Some(written) if request.verb() == Verb::DeleteCollection => {
                self.leave_collection(request, written, body).await
            }
            Some(written) if request.verb() == Verb::Delete => self.leave_shared(request, written, body).await,
            Some(written) => self.write_shared(request, written, body).await,
        };
        match planned {
            Ok(plan) => Ok(plan),
            Err(refusal) => {
                let upstream = Upstream { path: &place, identity: As::Agent, namespace: None, mapping: &self.mapping };
                Err(self.prefer_host_error(request, &upstream, &body.bytes(), refusal).await)
            }
        }
    }

    /// The kind of object that is written; `None` for a read.
    async fn writes_shared(&self, request: &ResourceRequest<'_>) -> Result<Option<Written>, Refusal> {
        let is_read = request.verb().is_read();
        if is_read && request.subresource().is_none_or(|subresource| subresource == "status") {
            return Ok(None);
        }
        let written = match self.custom {
            Some(custom) => (custom == Custom::Shared).then_some(Written::Custom),
            None => Kind::of(request.group_resource()).map(Written::Kind),
        };
        let is_listed = self.services.shared.load().lets_write(request.group_resource());
        let is_there = match request.subresource() {
            None => true,
            Some("status") => written == Some(Written::Kind(Kind::CustomResourceDefinition)),
            Some(_) => false,
        };
        let Some(written) = written.filter(|_| is_listed && !is_read && is_there) else {
            return Err(forbidden(request, policy::read_only(Class::Shared)));
        };
        if written == Written::Custom {
            self.may_write_itself(request).await?;
        }
        Ok(Some(written))
    }

    fn read_shared(&self, request: &ResourceRequest<'_>) -> Result<Plan, Refusal> {
        if request.verb() != Verb::Get {
            return self.list_shared(request, self.info.method().clone());
        }
        let target = Self::target(&request.path().build(), self.info.query());
        let mut upstream = self.upstream(self.info.method().clone(), &target, As::Agent, empty())?;
        self.readable(&mut upstream)?;
        Ok(self.planned(request, upstream, self.shared_transform(request)))
    }

    /// Lists the objects that the query selects, by the labels that the cluster sees.
    fn list_shared(&self, request: &ResourceRequest<'_>, method: Method) -> Result<Plan, Refusal> {
        let mut query = self.list_query(request, None)?;
        query.remove("labelSelector");
        let selector = self.selected_labels()?;
        let target = Self::target(&request.path().build(), &query);
        let mut upstream = self.upstream(method, &target, As::Agent, empty())?;
        self.readable(&mut upstream)?;
        let transform = self.list_transform(request, self.program(request), Filter::Shared)?;
        let mut plan = self.planned(request, upstream, transform);
        plan.selecting = Some(selector).filter(|selector| !selector.is_empty());
        Ok(plan)
    }

    fn selected_labels(&self) -> Result<LabelSelector, Refusal> {
        let options = ListOptions::parse(self.info.query())?;
        options
            .label_selector
            .parse()
            .map_err(|error: LabelSelectorError| Status::bad_request(error.to_string()).into())
    }

    /// A client for the agent's own requests.
    fn api(&self) -> Api {
        Api::new(self.services.host.clone())
    }

    /// The object at `path`, even if this cluster does not see it.
    async fn live(&self, request: &ResourceRequest<'_>, path: &str) -> Result<Option<HostObject>, Refusal> {
        let read = self.upstream(Method::GET, path, As::Agent, empty())?;
        match self.answer(request, read).await {
            Ok(object) => Ok(Some(self.load_overlay(HostObject::new(object)).await?)),
            Err(refusal) => match refusal {
                Refusal::Status(status) if status.code == 404 => Ok(None),
                other => Err(other),
            },
        }
    }

    /// The object in the host's response. A refusal of the host becomes the response to the client.
    async fn answer(&self, about: &ResourceRequest<'_>, request: Request<RequestBody>) -> Result<Value, Refusal> {
        let unreadable = |error: String| Refusal::Unreadable(error);
        let body = self.accepted(about, request).await?;
        let body = self.outside(self.answer_collector().collect(body, MAX_OBJECT)).await?;
        self.parse_in_turn(&body).await?;
        let object: Map<String, Value> =
            serde_json::from_slice(&body).map_err(|error| unreadable(error.to_string()))?;
        if object.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
            return Err(unreadable("its metadata is no object".to_owned()));
        }
        Ok(Value::Object(object))
    }

    /// The body of a successful response of the host. A refusal of the host becomes the response to the client.
    async fn accepted(
        &self,
        about: &ResourceRequest<'_>,
        mut request: Request<RequestBody>,
    ) -> Result<HostBody, Refusal> {
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let response = self.send(request).await?;
        match response.status() {
            status if status.is_success() => Ok(response.into_body()),
            // It would name the agent's account on the host, which lacks the required rights.
            StatusCode::FORBIDDEN => Err(forbidden(about, policy::NOT_GIVEN)),
            _ => Err(self.refused(about, response).await),
        }
    }

    /// Waits until an object of the host may be parsed. At most two parsed objects are in memory at once: this one, and
    /// the one that is derived from it.
    async fn parse_in_turn(&self, object: &[u8]) -> Result<(), Refusal> {
        let memory = weight(object);
        if memory > MAX_LIVE {
            return Err(too_many_parts());
        }
        self.read_weight.fetch_max(memory, Ordering::Relaxed);
        match Size::of(object.len(), memory) {
            Size::Large => self.take_turn(Size::Large).await,
            size => {
                self.hold(2 * memory)?;
                self.take_turn(size).await
            }
        }
    }

    /// A write of a JSON object on the host.
    fn put_upstream(
        &self,
        method: Method,
        path: &str,
        query: &Query<'_>,
        object: &Value,
    ) -> Result<Request<RequestBody>, Refusal> {
        let body = Bytes::from(object.to_string());
        self.admit_sent(&body)?;
        let mut request = self.upstream(method, &Self::target(path, query), As::Agent, full(body))?;
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    /// The query of a write, with a field manager of this cluster.
    fn write_query(&self) -> Result<Query<'static>, Refusal> {
        let mut query = self.info.query().borrowed().into_owned();
        query.remove("force");
        if let Some(manager) = self.manager()? {
            query.set("fieldManager", &manager);
        }
        Ok(query)
    }

    /// The same query for a dry run.
    fn dry_query(&self) -> Result<Query<'static>, Refusal> {
        let mut query = self.write_query()?;
        if !query.contains("dryRun") {
            query.append("dryRun", "All");
        }
        Ok(query)
    }

    /// The field manager on the host. `None` if the name is invalid or missing, so that the host refuses it. Managers
    /// of virtual clusters always have the prefix. A manager without it belongs to the operator.
    fn manager(&self) -> Result<Option<String>, Refusal> {
        let options = WriteOptions::parse(self.info.query())?;
        let mut named = &*options.field_manager;
        // `ValidateFieldManager` in apimachinery's `meta/v1/validation`.
        if named.len() > field_manager::MAX_LENGTH || named.chars().any(char::is_control) {
            return Ok(None);
        }
        if named.is_empty() {
            if BodyType::of_patch(content_type(&self.headers)) == Ok(BodyType::ApplyYaml) {
                return Ok(None);
            }
            // `prefixFromUserAgent` in apiserver's `handlers/create.go`.
            let agent = self.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
            named = agent.split('/').next().filter(|name| !name.is_empty()).unwrap_or(UNKNOWN_MANAGER);
        }
        let mut manager = format!("{MANAGER_PREFIX}{}:", self.cluster.name);
        manager.extend(named.chars().filter(char::is_ascii_graphic));
        manager.truncate(field_manager::MAX_LENGTH);
        Ok(Some(manager))
    }

    /// The transform for one shared object.
    fn shared_transform(&self, request: &ResourceRequest<'_>) -> ResponseTransform {
        ResponseTransform::Object { program: self.program(request), filter: Filter::Shared, only: None }
    }
}

#[cfg(test)]
mod tests;
