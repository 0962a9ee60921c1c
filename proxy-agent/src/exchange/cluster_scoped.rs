//! Cluster-scoped requests, and requests in all namespaces: authorised in the root namespace (see `authorise`), then
//! sent with the agent's identity.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, header};
use kube_wire::media::{BodyType, Encoding};
use kube_wire::name::SegmentName;
use kube_wire::query::Query;
use kube_wire::selector::LabelSelector;
use kube_wire::status::Reason;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::name::CLUSTER_LABEL;
use rewrite::protobuf::ObjectMetadata;
use rewrite::view::Filter;
use rewrite::{HostNamespace, Program, VirtualNamespace, schema};
use serde_json::json;
use tokio::time::timeout;

use super::body::{Body, content_type};
use super::host_error::Upstream as Place;
use super::list::NOBODYS;
use super::plan::{After, As, Plan, program};
use super::review::Kind;
use super::{ApiRequest, mirrors};
use crate::refusal::Refusal;
use crate::translate::{ResponseTransform, Upstream, encoding};
use host_client::collect::MAX_OBJECT;
use host_client::{HostBody, empty};
use virtual_cluster::namespaces;
use virtual_cluster::policy::{self, Class, Custom};
use virtual_cluster::provisioner::Growth;
use virtual_cluster::shared::{self, Moved};

/// Namespaces that no API server deletes (`immortalNamespaces` of the admission plugin `NamespaceLifecycle`).
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Selects the APIServices that kube-apiserver creates for its own groups (`AutoRegisterManagedLabel` in
/// kube-aggregator's `controllers/autoregister/autoregister_controller.go`). No Service of the host serves them.
const LOCAL_APIS: &str = "kube-aggregator.kubernetes.io/automanaged=onstart";

/// The time that a request waits until the agent knows the host's nodes.
const NODES_SYNC_TIMEOUT: Duration = Duration::from_secs(5);

impl ApiRequest<'_> {
    pub(super) async fn cluster_scoped(&self, request: &ResourceRequest<'_>, body: &Body) -> Result<Plan, Refusal> {
        let class = policy::class(request.group_resource());
        if class == Class::Namespaces {
            return self.namespaces(request, body).await;
        }
        if let (Class::Review, Some(kind)) = (class, Kind::of(request)) {
            return self.review(request, kind, None, body).await;
        }
        let known = self.services.discovery.resource(request.group_version_resource()).await;
        let known = known.map_err(|error| Refusal::from(Status::service_unavailable(error.to_string())))?;
        let Some(known) = known else { return self.unknown(request) };
        if known.namespaced {
            return self.everywhere(request).await;
        }
        let class = match self.custom {
            Some(Custom::Renamed) => return self.renamed(request, body).await,
            Some(Custom::Read | Custom::Shared) => return self.shared(request, body).await,
            Some(Custom::Hidden) => Class::Empty(policy::HIDDEN),
            None => class,
        };
        match class {
            Class::Roles => self.cluster_roles(request, body).await,
            Class::Bindings => self.cluster_bindings(request, body).await,
            Class::Shared if shared::Kind::of(request.group_resource()).is_some() => self.shared(request, body).await,
            _ if !request.verb().is_read() => Err(forbidden(request, policy::read_only(class))),
            Class::Empty(_) => self.nothing(request).await,
            _ if request.subresource().is_some_and(|subresource| subresource != "status") => {
                Err(forbidden(request, policy::read_only(class)))
            }
            Class::Nodes => self.pass(request, Filter::Everything, Some(&self.cluster.node_selector.labels)).await,
            Class::Claimed => self.pass(request, Filter::ByClaim, None).await,
            Class::OfNodes => {
                self.known_nodes().await?;
                self.pass(request, Filter::ByNode, None).await
            }
            Class::Addresses => {
                let mut plan = self.pass(request, Filter::ByParent, None).await?;
                plan.projected = self.projected_everywhere(request).await?;
                Ok(plan)
            }
            Class::LocalApis => {
                let local = LOCAL_APIS.parse().expect("a constant selector");
                self.pass(request, Filter::Everything, Some(&local)).await
            }
            Class::Autoupdated => self.pass(request, Filter::Autoupdated, None).await,
            // Reviews can only be created. The host returns the error.
            Class::Shared | Class::Review => self.pass(request, Filter::Everything, None).await,
            Class::Namespaces => unreachable!("served above"),
        }
    }

    /// A resource of which the virtual cluster has no objects. The request still goes to the host, so that columns,
    /// encodings, the resource version and the bookmarks of a watch are those of any API server.
    async fn nothing(&self, request: &ResourceRequest<'_>) -> Result<Plan, Refusal> {
        if matches!(request.verb(), Verb::List | Verb::Watch) {
            return self.pass(request, Filter::Nothing, None).await;
        }
        let name = request.path_name().unwrap_or_default();
        Err(Status::not_found(request.group_resource(), name).into())
    }

    /// A resource that is not known to be served; the host returns the error. The agent sends a read instead of the
    /// request, and hides the response if the host serves the resource by now, because its owner is not known yet.
    fn unknown(&self, request: &ResourceRequest<'_>) -> Result<Plan, Refusal> {
        let target = format!("{}?limit=1", request.path().build());
        let mut upstream = self.upstream(Method::GET, &target, As::Agent, empty())?;
        upstream.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        // This program finds no namespace in the object, so the filter always hides it.
        let transform =
            ResponseTransform::Object { program: Program::default(), filter: Filter::ByNamespace, only: None };
        Ok(Plan { not_found: Status::path_not_found(), ..self.planned(request, upstream, transform) })
    }

    /// All namespaces of the cluster: the host's response for all its namespaces, filtered while it streams.
    async fn everywhere(&self, request: &ResourceRequest<'_>) -> Result<Plan, Refusal> {
        if matches!(request.verb(), Verb::List | Verb::Watch) {
            let hidden = mirrors::hidden(request);
            let mut plan = self.pass(request, Filter::ByNamespace, hidden.as_ref()).await?;
            plan.projected = self.projected_everywhere(request).await?;
            return Ok(plan);
        }
        // The response of an API server to `DELETE /api/v1/pods`.
        Err(Status::method_not_allowed_here().into())
    }

    /// Reads the objects that `only` selects, with the agent's identity.
    pub(super) async fn pass(
        &self,
        request: &ResourceRequest<'_>,
        filter: Filter,
        only: Option<&LabelSelector>,
    ) -> Result<Plan, Refusal> {
        match self.passed(request, filter, only) {
            Ok(plan) => Ok(plan),
            Err(refusal) => {
                let (path, mapping) = (request.path().build(), &self.mapping);
                let upstream = Place { path: &path, identity: As::Agent, namespace: None, mapping };
                Err(self.prefer_host_error(request, &upstream, &Bytes::new(), refusal).await)
            }
        }
    }

    fn passed(
        &self,
        request: &ResourceRequest<'_>,
        filter: Filter,
        only: Option<&LabelSelector>,
    ) -> Result<Plan, Refusal> {
        let listed = matches!(request.verb(), Verb::List | Verb::Watch);
        let mut query =
            if listed { self.list_query(request, only)? } else { self.info.query().borrowed().into_owned() };
        if listed && filter == Filter::Nothing {
            select_nothing(request, &mut query)?;
        }
        let target = Self::target(&request.path().build(), &query);
        let mut upstream = self.upstream(self.info.method().clone(), &target, As::Agent, empty())?;
        self.readable(&mut upstream)?;
        if is_hidden_by_metadata(request) {
            whole_objects(&mut upstream)?;
        }
        let program = program(request);
        let transform = if listed {
            self.list_transform(request, program, filter)?
        } else {
            ResponseTransform::Object { program, filter, only: only.cloned() }
        };
        Ok(self.planned(request, upstream, transform))
    }

    /// Waits until the cluster's nodes are known, shortly after the agent has started.
    pub(super) async fn known_nodes(&self) -> Result<(), Refusal> {
        self.outside(timeout(NODES_SYNC_TIMEOUT, self.cluster.nodes.synced())).await.map_err(|_| {
            Status::service_unavailable("the nodes of this cluster are not known yet").with_retry_after(1).into()
        })
    }

    async fn namespaces(&self, request: &ResourceRequest<'_>, body: &Body) -> Result<Plan, Refusal> {
        let Some(name) = request.path_name() else {
            return self.namespace_collection(request, body).await;
        };
        let missing = || Refusal::from(Status::not_found(request.group_resource(), name));
        let namespace = VirtualNamespace::new(name).map_err(|_| missing())?;
        let host = self.mapping.host(&namespace).ok().filter(|host| self.mapping.member(host.as_ref()).is_some());
        let Some(host) = host else {
            let is_apply = BodyType::of_patch(content_type(&self.headers)) == Ok(BodyType::ApplyYaml);
            if request.verb() != Verb::Patch || !is_apply || request.subresource().is_some() {
                return Err(missing());
            }
            return match self.apply_namespace(request, &namespace, &body.bytes()).await {
                Ok(plan) => Ok(plan),
                Err(refusal) => {
                    let (identity, mapping) = (As::Agent, &self.mapping);
                    // A path without an owner, for errors that depend only on the request.
                    let nobody = SegmentName::new(NOBODYS).expect("a constant segment");
                    let path = request.path_with(None, Some(&nobody));
                    let upstream = Place { path: &path, identity, namespace: None, mapping };
                    Err(self.prefer_host_error(request, &upstream, &body.bytes(), refusal).await)
                }
            };
        };
        let segment = SegmentName::new(host.as_str()).expect("a DNS label is a path segment");
        let path = request.path_with(None, Some(&segment));
        if request.verb() == Verb::Watch {
            // The deprecated `/api/v1/watch/namespaces/NAME`.
            let query = self.list_query(request, None)?;
            let target = Self::target(&path, &query);
            let mut upstream = self.upstream(self.info.method().clone(), &target, As::Caller, empty())?;
            self.readable(&mut upstream)?;
            return Ok(self.planned(
                request,
                upstream,
                self.list_transform(request, program(request), Filter::ByName)?,
            ));
        }
        if request.verb() == Verb::Delete && request.subresource().is_none() && IMMORTAL.contains(&name) {
            return Err(forbidden(request, "this namespace may not be deleted"));
        }
        let planned = self.namespace(request, &host, &path, &body.bytes()).await;
        match planned {
            Ok(plan) => Ok(plan),
            Err(refusal) => {
                let (identity, mapping) = (As::Caller, &self.mapping);
                let upstream = Place { path: &path, identity, namespace: Some(&host), mapping };
                Err(self.prefer_host_error(request, &upstream, &body.bytes(), refusal).await)
            }
        }
    }

    /// A request about one Namespace, or a subresource of it.
    async fn namespace(
        &self,
        request: &ResourceRequest<'_>,
        host: &HostNamespace,
        path: &str,
        body: &Bytes,
    ) -> Result<Plan, Refusal> {
        let mut again = false;
        let mut upstream = match request.verb() {
            Verb::Patch => {
                let patched = self.patch(request, None, path, body).await?;
                again = patched.again;
                patched.request
            }
            verb => {
                let body = if verb.is_read() { empty() } else { self.body(request, None, body).await? };
                let target = Self::target(path, self.info.query());
                self.upstream(self.info.method().clone(), &target, As::Caller, body)?
            }
        };
        self.readable(&mut upstream)?;
        let transform = ResponseTransform::Object { program: program(request), filter: Filter::ByName, only: None };
        let mut plan = self.planned(request, upstream, transform);
        plan.again = again;
        let is_write = matches!(request.verb(), Verb::Update | Verb::Patch);
        if is_write && self.cluster.pod_security.is_some() && request.subresource() != Some("finalize") {
            plan.after = After::Labelled(format!("{}/{host}", namespaces::PATH));
        }
        Ok(plan)
    }

    async fn namespace_collection(&self, request: &ResourceRequest<'_>, body: &Body) -> Result<Plan, Refusal> {
        match request.verb() {
            Verb::List | Verb::Watch => self.pass(request, Filter::ByName, Some(&self.own_label())).await,
            Verb::Create => {
                let (path, is_dry) = (request.path().build(), self.is_dry_run(&body.bytes())?);
                let (body, name) = match self.namespace_body(request, &body.bytes()).await {
                    Ok(mapped) => mapped,
                    Err(refusal) => {
                        let (identity, mapping) = (As::Agent, &self.mapping);
                        let upstream = Place { path: &path, identity, namespace: None, mapping };
                        return Err(self.prefer_host_error(request, &upstream, &body.bytes(), refusal).await);
                    }
                };
                let target = Self::target(&path, self.info.query());
                let mut upstream = self.upstream(self.info.method().clone(), &target, As::Agent, body)?;
                self.readable(&mut upstream)?;
                let transform =
                    ResponseTransform::Object { program: program(request), filter: Filter::Everything, only: None };
                let mut plan = self.planned(request, upstream, transform);
                plan.mapping = self.mapping.clone().asking_for(name);
                self.has_room(request, Growth::Namespace)?;
                if !is_dry {
                    plan.after = After::PostCreate;
                }
                Ok(plan)
            }
            _ => Err(Status::method_not_allowed_here().into()),
        }
    }

    /// Whether the quota has room for more mirrors.
    pub(super) fn has_room(&self, request: &ResourceRequest<'_>, growth: Growth<'_>) -> Result<(), Refusal> {
        let room = self.services.provisioner.has_room(&self.cluster.name, growth);
        room.map_err(|full| forbidden(request, &full.to_string()))
    }

    /// The label of all namespaces and roles of the cluster.
    pub(super) fn own_label(&self) -> LabelSelector {
        let labels = [(CLUSTER_LABEL, self.cluster.name.as_str())];
        LabelSelector::from_labels(labels).expect("a label of ours and a DNS label")
    }

    pub(super) fn planned(
        &self,
        request: &ResourceRequest<'_>,
        upstream: http::Request<host_client::RequestBody>,
        transform: ResponseTransform,
    ) -> Plan {
        let name = request.path_name().unwrap_or_default();
        Plan {
            request: upstream,
            transform,
            mapping: self.mapping.clone(),
            projected: None,
            otherwise: None,
            not_found: Status::not_found(request.group_resource(), name),
            selecting: None,
            again: false,
            written: None,
            after: After::Nothing,
            moved: Moved::default(),
        }
    }

    /// Creates the initial objects of a new namespace before the client gets the response.
    pub(super) async fn post_create(&self, response: Response<HostBody>) -> Result<Response<Upstream>, Refusal> {
        if !response.status().is_success() {
            return Ok(response.map(Upstream::Stream));
        }
        let (mut parts, body) = response.into_parts();
        let body = self.answer_collector().collect(body, MAX_OBJECT).await?;
        let created = if encoding(&parts.headers) == Some(Encoding::Protobuf) {
            let ObjectMetadata { name, uid, resource_version, labels, .. } =
                ObjectMetadata::of(&body).map_err(|error| Refusal::Unreadable(error.to_string()))?;
            let metadata = json!({"name": name, "uid": uid, "resourceVersion": resource_version, "labels": labels});
            json!({"metadata": metadata})
        } else {
            serde_json::from_slice(&body).map_err(|error| Refusal::Unreadable(error.to_string()))?
        };
        self.services.provisioner.post_create(&created).await;
        self.warn_of_pod_security(&created["metadata"]["labels"], &mut parts.headers);
        Ok(Response::from_parts(parts, Upstream::Whole(body)))
    }
}

/// Whether the owner of an object cannot be determined from its metadata alone.
fn is_hidden_by_metadata(request: &ResourceRequest<'_>) -> bool {
    matches!(
        (request.group(), request.resource()),
        ("", "persistentvolumes")
            | ("networking.k8s.io", "ipaddresses")
            | ("resource.k8s.io", "resourceslices")
            | ("storage.k8s.io", "volumeattachments")
    )
}

/// Selects an object that does not exist, so that the host does not send objects that would be filtered out. Servers of
/// aggregated APIs may not support this field.
fn select_nothing(request: &ResourceRequest<'_>, query: &mut Query<'_>) -> Result<(), Refusal> {
    if request.name().is_some() || schema::kind_of(request.group(), request.resource()).is_none() {
        return Ok(());
    }
    let asked = query.first("fieldSelector").map_err(|error| Status::bad_request(error.to_string()))?;
    let comma = if asked.as_ref().is_none_or(|asked| asked.is_empty()) { "" } else { "," };
    let narrowed = format!("{}{comma}metadata.name={NOBODYS}", asked.unwrap_or_default());
    query.set("fieldSelector", &narrowed);
    Ok(())
}

/// Requests whole objects, or Tables, even if the client would also accept only metadata. Most clients that request
/// metadata also accept whole objects, because old API servers return nothing else.
fn whole_objects(upstream: &mut http::Request<host_client::RequestBody>) -> Result<(), Refusal> {
    let accept = upstream.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let rest: Vec<_> = accept.split(',').filter(|clause| !clause.contains("as=PartialObjectMetadata")).collect();
    if rest.is_empty() {
        let message = "this resource is not available as metadata only";
        return Err(Status::failure(406, Reason::NotAcceptable, message).into());
    }
    let value = HeaderValue::try_from(rest.join(",")).expect("a part of a header's value is one");
    upstream.headers_mut().insert(header::ACCEPT, value);
    Ok(())
}

/// A refusal regardless of the caller's roles.
pub(super) fn forbidden(request: &ResourceRequest<'_>, why: &str) -> Refusal {
    Status::forbidden_because(request.group_resource(), request.path_name().unwrap_or_default(), why).into()
}
