//! The path of one API request through the agent.
//!
//! ```text
//! RequestInfo -> authenticate (Caller) -> authorise -> body -> seats -> plan (identity, host names) -> host -> transform
//! ```
//!
//! Each step passes a value of its own type to the next one, and never calls back. The body is not read before the
//! caller is authorised. `plan` decides how to send the request. To decide, it may send reads and dry runs to the host.
//! `host` never sees a virtual name, and `rewrite` never sees HTTP.

mod apply_namespace;
mod authorise;
mod body;
mod body_cost;
mod cluster_scoped;
mod control_plane;
mod deletion;
pub mod explain;
mod generate;
mod head;
mod host_error;
mod list;
mod log_metadata;
mod mirrors;
mod namespaced;
mod node_ports;
mod non_resource;
mod object;
mod patch;
mod plan;
mod projected;
mod rbac;
mod read;
mod renamed;
mod review;
mod sample;
mod secured;
mod shared;
mod turn;
mod upgrade;
mod whole;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::tunnel::Inbound;
use ::tunnel::outbound::send_body;
use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use kube_wire::{RequestInfo, Status, Target};
use ops::files::Watched;
use protocol::ClusterName;
use protocol::stream::{CLUSTER, METHOD};
use rewrite::view::Certificate;
use rewrite::{Mapping, View, VirtualNamespace};
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::discovery::Discovery;
use crate::nodes::Nodes;
use crate::refusal::{Exhausted, Refusal};
use crate::seal::Seal;
use crate::translate::{Collector, ShownBody, Upstream, transform_response, warnings};
use authorise::Identified;
use body::{Body, BodyUse};
use caller::authz::{Authorizer, SETTLING_ATTEMPTS, SETTLING_PAUSE};
use caller::impersonation::acting_as;
use caller::{Authenticator, Caller};
use host_client::api::Api;
use host_client::{Host, HostBody};
use log_metadata::LogMetadata;
use node_ports::Ports;
use plan::{After, Plan};
use turn::Turn;
use virtual_cluster::admission_policies::AdmissionPolicies;
use virtual_cluster::clusters::{VirtualCluster, VirtualClusters};
use virtual_cluster::own_rights::OwnRights;
use virtual_cluster::policy::Custom;
use virtual_cluster::provisioner::Provisioner;
use virtual_cluster::share::seats::Seated;
use virtual_cluster::shared::{Definitions, Overlays, Rules};

/// The number of retries of a patch that became a PUT (`MaxRetryWhenPatchConflicts` in apiserver's `patch.go`).
pub(crate) const CONFLICTS: u32 = 5;

/// The time that a request waits until the agent knows the host's namespaces.
const NAMESPACES_SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves API requests. Cheap to clone.
#[derive(Clone)]
pub struct Exchange {
    services: Arc<Services>,
}

/// What requests use of the agent.
pub(crate) struct Services {
    pub(crate) host: Host,
    pub(crate) clusters: Arc<VirtualClusters>,
    pub(crate) authn: Authenticator,
    pub(crate) authz: Authorizer,
    pub(crate) provisioner: Provisioner<Api>,
    pub(crate) admission_policies: AdmissionPolicies<Api>,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) nodes: Nodes,
    pub(crate) shared: Rules,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) overlays: Arc<Overlays>,
    pub(crate) own_rights: Arc<OwnRights<Api>>,
    /// The authority that clients of the endpoints trust. It replaces that of the host where the host publishes it.
    pub(crate) endpoint_ca: Watched<Certificate>,
    pub(crate) seal: Arc<Seal>,
    /// Whether a Service gets another node port if the requested one belongs to another virtual cluster.
    pub(crate) replaces_node_ports: bool,
}

/// A request whose caller is authenticated.
pub(crate) struct ApiRequest<'a> {
    pub(crate) services: &'a Services,
    pub(crate) cluster: &'a Arc<VirtualCluster>,
    /// One snapshot of the names, for the request and its response.
    pub(crate) mapping: Mapping,
    pub(crate) caller: Caller,
    pub(crate) info: RequestInfo<'a>,
    pub(crate) headers: HeaderMap,
    /// Namespaces that the body names. They need not exist, and a refusal may name them.
    named: Mutex<Vec<VirtualNamespace>>,
    /// How the resource is served, if it is a custom one without namespaces.
    custom: Option<Custom>,
    /// The node ports of the Service that is written.
    node_ports: Mutex<Option<Ports>>,
    /// Warnings for the client. Its response gets them, also if it is a refusal of the host or of the agent.
    warnings: Mutex<Vec<HeaderValue>>,
    /// The version of the object that the last attempt was for.
    tried_version: Mutex<String>,
    /// The weight that has been counted towards the rate limit for this request, in bytes.
    counted_weight: AtomicUsize,
    /// The weight of what was read from the host for a write, in bytes.
    read_weight: AtomicUsize,
    turn: Turn,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

// === impl Exchange ===

impl Exchange {
    /// An exchange that uses these services.
    pub(crate) fn new(services: Services) -> Self {
        Self { services: Arc::new(services) }
    }

    /// Serves one stream of the tunnel.
    pub(crate) async fn serve(
        &self,
        cluster: &ClusterName,
        request: Request<Inbound>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let accept = request.headers().get(header::ACCEPT).cloned();
        let bodiless = request.method() == Method::HEAD;
        let mut log_metadata = LogMetadata::default();
        let Some(cluster) = self.services.clusters.get(cluster) else {
            return refuse(not_served(cluster.as_str()), &log_metadata, accept.as_ref(), bodiless, respond);
        };
        let exchanged = tokio::select! {
            exchanged = self.exchange(&cluster, request, &mut log_metadata, &mut respond) => exchanged,
            () = cluster.lasting.end.cancelled() => Err(not_served(cluster.name.as_str())),
        };
        match exchanged {
            Ok(response) => {
                let (mut parts, body) = response.into_parts();
                log_metadata.write(&mut parts.headers);
                let (bodiless, overdue) = (body.is_end_stream(), body.overdue());
                let stream = respond.send_response(Response::from_parts(parts, ()), bodiless)?;
                if bodiless {
                    return Ok(());
                }
                tokio::select! {
                    sent = send_body(body, stream) => if let Err(error) = sent {
                        debug!(error = &error as &dyn std::error::Error, "response ended early");
                    },
                    // Dropping the stream resets it, so that the client does not take the body for complete.
                    () = cluster.lasting.end.cancelled() => debug!("response ended because the cluster was removed"),
                    () = overdue => debug!("client did not read the response in time"),
                }
                Ok(())
            }
            Err(refusal) => {
                debug!(%refusal, "refused");
                refuse(refusal, &log_metadata, accept.as_ref(), bodiless, respond)
            }
        }
    }

    /// Serves one stream that switches protocols.
    pub(crate) async fn serve_upgrade(
        &self,
        cluster: &ClusterName,
        request: Request<Inbound>,
        respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let accept = request.headers().get(header::ACCEPT).cloned();
        let mut log_metadata = LogMetadata::default();
        let Some(cluster) = self.services.clusters.get(cluster) else {
            return refuse(not_served(cluster.as_str()), &log_metadata, accept.as_ref(), false, respond);
        };
        let exchanged = tokio::select! {
            exchanged = upgrade::exchange(&self.services, &cluster, request, &mut log_metadata) => exchanged,
            () = cluster.lasting.end.cancelled() => Err(not_served(cluster.name.as_str())),
        };
        match exchanged {
            Ok(switched) => tokio::select! {
                carried = switched.carry(respond, &log_metadata) => carried,
                () = cluster.lasting.end.cancelled() => Ok(()),
            },
            Err(refusal) => refuse(refusal, &log_metadata, accept.as_ref(), false, respond),
        }
    }

    async fn exchange(
        &self,
        cluster: &Arc<VirtualCluster>,
        request: Request<Inbound>,
        log_metadata: &mut LogMetadata,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<Response<Seated<ShownBody>>, Refusal> {
        let (head, body) = request.into_parts();
        let _charge = body_cost::charge_head(cluster, &head)?;
        self.services.admit(cluster).await?;
        let query = head.uri.query();
        let info = RequestInfo::parse(&head.method, head.uri.path(), query).map_err(|error| Refusal::from(&error))?;
        let identified = ApiRequest::identify(&self.services, cluster, info, head.headers).await?;
        log_metadata.identified(identified.caller());
        let api_request = identified.authorise().await?;
        let body = Body::receive(body, api_request.body_use(), &cluster.lasting.memory.bodies).await?;
        let occupied = match api_request.load() {
            Some(load) => tokio::select! {
                occupied = cluster.lasting.seats.take(load) => Some(occupied.ok_or(Exhausted::Seats)?),
                // The client has reset the request, so it does not get this refusal. Nothing has been sent to the host.
                _ = poll_fn(|cx| respond.poll_reset(cx)) => return Err(Exhausted::Seats.into()),
            },
            None => None,
        };
        let response = api_request.respond(&body, log_metadata).await?;
        Ok(response.map(|body| match body.patience() {
            // The host has sent all of it, so it occupies no seats.
            Some(patience) => Seated::in_memory(body, patience),
            None => Seated::new(body, occupied),
        }))
    }
}

/// The cluster is not in this agent's configuration: the proxy-server learns of changes a moment later.
fn not_served(cluster: &str) -> Refusal {
    let message = format!("this agent does not serve cluster {cluster}");
    Status::service_unavailable(message).with_retry_after(1).into()
}

/// The value of a `Warning` header (RFC 7234, section 5.5), as `NewWarningHeader` in apimachinery's `util/net/http.go`
/// writes it; `None` if a header cannot carry the text.
fn warning(text: &str) -> Option<HeaderValue> {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::try_from(format!("299 - \"{escaped}\"")).ok()
}

/// The response 201 for an update that created the object for this cluster.
fn made(mut response: Response<HostBody>) -> Response<HostBody> {
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::CREATED;
    }
    response
}

/// The response for an object that an update has removed from this cluster.
fn gone(response: Response<HostBody>, said: &Bytes) -> Response<Upstream> {
    if response.status().is_success() {
        response.map(|_| Upstream::Whole(said.clone()))
    } else {
        response.map(Upstream::Stream)
    }
}

fn refuse(
    refusal: Refusal,
    log_metadata: &LogMetadata,
    accept: Option<&HeaderValue>,
    bodiless: bool,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let fault = refusal.fault();
    let (mut response, body) = refusal.into_response(accept);
    log_metadata.write_refusal(response.headers_mut(), fault);
    let mut stream = respond.send_response(response, bodiless)?;
    if bodiless { Ok(()) } else { stream.send_data(body, true) }
}

// === impl Services ===

impl Services {
    /// Refuses requests until the admission policies are in force, and until the owners of all namespaces are known.
    async fn admit(&self, cluster: &VirtualCluster) -> Result<(), Refusal> {
        let standing = self.admission_policies.first_standing().await;
        let not_yet = |reason: &dyn std::fmt::Display| {
            let message = format!("cluster {} is not served yet: {reason}", cluster.name);
            Refusal::from(Status::service_unavailable(message).with_retry_after(1))
        };
        standing.admits().map_err(|reason| not_yet(&reason))?;
        let known = timeout(NAMESPACES_SYNC_TIMEOUT, cluster.namespaces_known());
        known.await.map_err(|_| not_yet(&"the namespaces of the host are not known yet"))
    }
}

// === impl ApiRequest ===

impl<'a> ApiRequest<'a> {
    /// Authenticates the caller. Afterwards, the headers have no credentials, and none of the tunnel's own headers.
    pub(crate) async fn identify(
        services: &'a Services,
        cluster: &'a Arc<VirtualCluster>,
        info: RequestInfo<'a>,
        mut headers: HeaderMap,
    ) -> Result<Identified<'a>, Refusal> {
        let mapping = cluster.mapping();
        let caller = services.authn.authenticate(&mapping, cluster.host_tokens.as_ref(), &mut headers).await?;
        let caller = acting_as(&services.authz, &mapping, caller, &mut headers).await?;
        for name in [CLUSTER, METHOD] {
            headers.remove(name);
        }
        Ok(Identified::new(Self {
            services,
            cluster,
            mapping,
            caller,
            info,
            headers,
            named: Mutex::default(),
            custom: None,
            node_ports: Mutex::default(),
            warnings: Mutex::default(),
            tried_version: Mutex::default(),
            counted_weight: AtomicUsize::new(0),
            read_weight: AtomicUsize::new(0),
            turn: Turn::default(),
        }))
    }

    /// The response to an authorised request. If the agent refuses it, `log_metadata` gets the warnings for the client.
    async fn respond(&self, body: &Body, log_metadata: &mut LogMetadata) -> Result<Response<ShownBody>, Refusal> {
        self.carry_out(body).await.inspect_err(|_| log_metadata.warned(self.shown_warnings()))
    }

    /// Carries out an authorised request. The stored warnings are only on a response of the host.
    async fn carry_out(&self, body: &Body) -> Result<Response<ShownBody>, Refusal> {
        let received = body.bytes();
        let cost = self.body_cost(&received);
        let _charge = self.charge(cost)?;
        self.admit_received(&received, cost)?;
        self.check_field_manager()?;
        for attempt in 0.. {
            self.take_turn(cost.size).await?;
            let mut plan = self.cluster.lasting.large_objects.in_turn(self.turn.is_working(), self.plan(body)).await?;
            self.turn.release_parsed();
            // A small patch of a large object becomes a large body.
            let sent = plan.request.body().bytes();
            self.admit_sent(&sent)?;
            self.check_managed_fields(&sent)?;
            self.hold(sent.len().saturating_sub(received.len()))?;
            drop(sent);
            let mut response = self.send_in_turn(plan.request).await?;
            if response.status() == StatusCode::NOT_FOUND
                && let Some(other) = plan.otherwise
            {
                plan = *other;
                response = self.send_in_turn(plan.request).await?;
            }
            if response.status().is_success() {
                self.turn.end();
            }
            let Plan { transform, mapping, projected, not_found, selecting, again, written, after, moved, .. } = plan;
            self.settle_overlay(moved, response.status()).await;
            if again && response.status() == StatusCode::CONFLICT && attempt < CONFLICTS {
                self.turn.end();
                continue;
            }
            if response.status() == StatusCode::FORBIDDEN && body.is_whole() && self.is_settling(attempt) {
                self.turn.end();
                sleep(SETTLING_PAUSE * (attempt + 1)).await;
                continue;
            }
            if self.is_bodiless() && transform.looks_at(response.status()) {
                return self.head(body, response).await;
            }
            self.note_write(response.status());
            self.note_own_write(response.status());
            self.put_in_force(written, response.status()).await;
            let response = match &after {
                After::PostCreate => self.post_create(response).await?,
                After::NodePorts => match self.node_ports_given(response).await? {
                    Some(response) => response,
                    None => continue,
                },
                After::FirstApply(apply) => self.first_apply(apply, response).await?,
                After::Tried => self.apply_tried(response)?,
                After::Labelled(path) => self.secured(path, response).await?,
                After::Nothing => response.map(Upstream::Stream),
                After::Made => made(response).map(Upstream::Stream),
                After::Advertised(advertised) => advertised.cut(response, self.answer_collector()).await?,
                After::Gone(said) => gone(response, said),
            };
            let response = self.count_refusal(self.warned(response)).await?;
            // The next body gets its turn only after a refusal has been counted.
            self.turn.end();
            let response = self.overlaid(&transform, response);
            let mut view = self.view(mapping);
            if let Some(lending) = projected {
                view = view.lending(lending);
            }
            if let Some(selecting) = selecting {
                view = view.selecting(selecting);
            }
            return transform_response(&view, transform, || not_found, response, self.answer_collector()).await;
        }
        unreachable!("the last attempt returns")
    }

    /// Whether a 403 of the host may be out of date, because its RBAC caches lag behind writes. Such a request had no
    /// effect.
    fn is_settling(&self, attempt: u32) -> bool {
        attempt < SETTLING_ATTEMPTS && self.services.authz.is_settling(&self.cluster.name)
    }

    /// Whether a conflict can be one of versions. If the object still has the version of the last attempt, the conflict
    /// is another one, such as that of field managers, which no further attempt can solve.
    fn is_new_version(&self, version: &str) -> bool {
        let mut tried = self.tried_version.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *tried != version;
        version.clone_into(&mut tried);
        is_new
    }

    /// A write of a role, a binding or a namespace invalidates cached decisions.
    fn note_write(&self, status: StatusCode) {
        let Target::Resource(request) = self.info.target() else { return };
        let decides = request.group() == "rbac.authorization.k8s.io"
            || (request.group().is_empty() && request.resource() == "namespaces");
        if decides && status.is_success() && !request.verb().is_read() {
            self.services.authz.flush(&self.cluster.name);
        }
    }

    /// If the host refuses a write of the agent, the agent may have lost the right.
    fn note_own_write(&self, status: StatusCode) {
        let Target::Resource(request) = self.info.target() else { return };
        if status == StatusCode::FORBIDDEN && self.is_renamed() && !request.verb().is_read() {
            self.services.own_rights.doubt(request.group_resource());
        }
    }

    /// How the body of this request is used.
    fn body_use(&self) -> BodyUse {
        match self.info.target() {
            Target::Resource(request) if namespaced::is_opaque(request) => BodyUse::Passed,
            Target::Resource(request) if !request.verb().is_read() => BodyUse::Mapped,
            _ => BodyUse::Ignored,
        }
    }

    /// Boxed, because otherwise the compiler cannot prove that the future is `Send` (rust-lang/rust#110338).
    fn plan<'p>(&'p self, body: &'p Body) -> Pin<Box<dyn Future<Output = Result<Plan, Refusal>> + Send + 'p>> {
        Box::pin(async move {
            self.outside(self.defined()).await?;
            match self.info.target() {
                Target::NonResource(request) => self.non_resource(request).await,
                Target::Resource(request) if request.namespace().is_some() && !request.is_namespace() => {
                    self.namespaced(request, body).await
                }
                Target::Resource(request) => self.cluster_scoped(request, body).await,
            }
        })
    }

    /// Collects responses that the agent reads before the request takes effect.
    fn collector(&self) -> Collector<'_> {
        Collector::new(&self.cluster.lasting.memory, &self.cluster.lasting.large_objects, true)
    }

    /// Collects the response to the request itself.
    fn answer_collector(&self) -> Collector<'_> {
        let is_read = match self.info.target() {
            Target::Resource(request) => request.verb().is_read(),
            Target::NonResource(_) => true,
        };
        Collector::new(&self.cluster.lasting.memory, &self.cluster.lasting.large_objects, is_read)
    }

    /// Stores the warnings of the last plan.
    fn warn(&self, texts: impl Iterator<Item = String>) {
        let warnings = texts.filter_map(|text| warning(&text)).collect();
        *self.warnings.lock().unwrap_or_else(PoisonError::into_inner) = warnings;
    }

    /// Adds the warnings of a response that the client does not get.
    fn warn_like<B>(&self, response: &Response<B>) {
        let warnings = response.headers().get_all(header::WARNING).iter().cloned();
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
    }

    /// The response with the stored warnings, each once (`AddWarning` in apiserver's `filters/warning.go`). They stay
    /// stored, because the agent may still refuse to forward the response.
    fn warned<B>(&self, mut response: Response<B>) -> Response<B> {
        for warning in self.warnings.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if !response.headers().get_all(header::WARNING).iter().any(|said| said == warning) {
                response.headers_mut().append(header::WARNING, warning.clone());
            }
        }
        response
    }

    /// The stored warnings, each once, in virtual names.
    fn shown_warnings(&self) -> Vec<HeaderValue> {
        let mut response = self.warned(Response::new(()));
        warnings(&self.view(self.mapping.clone()), response.headers_mut());
        response.headers().get_all(header::WARNING).iter().cloned().collect()
    }

    fn view(&self, mapping: Mapping) -> View {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let view = View::new(named.into_iter().fold(mapping, Mapping::asking_for));
        let view = view.hiding(Arc::clone(&self.cluster.guard)).presenting(self.services.endpoint_ca.borrow());
        let view = if self.cluster.pod_security.is_some() { view.enforcing_pod_security() } else { view };
        if self.wants_bare_rows() { view.with_bare_rows() } else { view }
    }
}
