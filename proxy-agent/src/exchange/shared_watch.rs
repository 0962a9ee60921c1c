//! Watches that the agent answers from a feed, which watches the host once for all virtual clusters (`feeds`).
//!
//! A feed answers the *planned* request, with the frames that the host would send. The engine maps them as if they came from
//! the host, so the plan, the mapping and the filter are the same in both cases. The feed reads the host in the agent's own
//! name. So the agent checks the right of the caller, before the watch and while it lasts.

use std::sync::Arc;

use feeds::{Begun, Bypass, Check, ClusterId, Collection, Feed, Membership, Permission, WatchQuery};
use http::{HeaderValue, Method, Response, Uri, header};
use kube_wire::RequestInfo;
use kube_wire::gvr::{GroupVersion, GroupVersionResource};
use kube_wire::request_info::ResourcePath;
use rewrite::schema;

use crate::exchange::call::Call;
use crate::exchange::cost::take_seats;
use crate::exchange::kinds::RBAC;
use crate::exchange::plan::Plan;
use crate::exchange::rights::allowed;
use crate::exchange::sharing::Sharing;
use crate::exchange::watch_right::WatchRight;
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::HostBody;

/// The watch that a plan requests, if a feed may serve it. `None` if it goes to the host.
pub(super) fn shareable(call: &Call<'_>, plan: &Plan) -> Option<WatchQuery> {
    let (sharing, request) = (call.services.sharing.as_ref()?, call.api.info.resource()?);
    watch_query(call, plan)?.inspect_err(|bypass| sharing.bypassed(*bypass, request)).ok()
}

/// The watch that a plan requests, if a feed may serve it, or the reason why the watch goes to the host. `None` if it is not a
/// watch, or if no watches are shared.
pub(super) fn watch_query(call: &Call<'_>, plan: &Plan) -> Option<Result<WatchQuery, Bypass>> {
    let sharing = call.services.sharing.as_ref()?;
    let is_watch = matches!(plan.transform, ResponseTransform::Watch { .. });
    is_watch.then(|| {
        let cluster = check_shareable(call, sharing, plan)?;
        let upstream = &plan.request;
        WatchQuery::read(upstream.method(), upstream.uri(), upstream.headers(), cluster)
    })
}

/// Checks that a feed may answer the planned list or watch: the agent adds nothing to the host's response, and the configuration
/// does not exclude the resource. Returns the number of the virtual cluster.
pub(super) fn check_shareable(call: &Call<'_>, sharing: &Sharing, plan: &Plan) -> Result<ClusterId, Bypass> {
    if plan.projected.is_some() || plan.otherwise.is_some() || plan.selecting.is_some() {
        return Err(Bypass::Class);
    }
    let request = call.api.info.resource().ok_or(Bypass::Verb)?;
    if sharing.excludes(request.group_resource()) {
        return Err(Bypass::Configured);
    }
    Ok(sharing.number(&call.api.cluster.name))
}

/// Answers a watch from a feed. `planned` is the target of the planned request. `None` if it goes to the host.
pub(super) async fn shared_watch(
    call: &mut Call<'_>,
    planned: &Uri,
    query: WatchQuery,
) -> Result<Option<Response<HostBody>>, Refusal> {
    let services = call.services;
    let Some(sharing) = &services.sharing else { return Ok(None) };
    let begun = match ready(call, sharing, planned, &query).await {
        Ok((feed, permission)) => {
            // The initial objects are in memory until the client has read them.
            take_seats(call).await?;
            call.outside(sharing.feeds.begin(&feed, query, permission)).await
        }
        Err(bypass) => Err(bypass),
    };
    let body = match begun {
        Ok(Begun::Watch(body)) => {
            sharing.count("watch");
            HostBody::produced(body)
        }
        Ok(Begun::Expired(event)) => {
            sharing.count("expired");
            HostBody::read(event)
        }
        Err(bypass) => {
            if let Some(request) = call.api.info.resource() {
                sharing.bypassed(bypass, request);
            }
            return Ok(None);
        }
    };
    Ok(Some(in_json(body)))
}

/// The response of a feed.
pub(super) fn in_json(body: HostBody) -> Response<HostBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The feed that can answer the watch of an authorised caller.
async fn ready(
    call: &mut Call<'_>,
    sharing: &Arc<Sharing>,
    planned: &Uri,
    query: &WatchQuery,
) -> Result<(Arc<Feed>, Permission), Bypass> {
    let request = call.api.info.resource().ok_or(Bypass::Verb)?;
    let collection = collection(call, planned).await.ok_or(Bypass::Class)?;
    let right = Arc::new(WatchRight::new(call, request));
    let permission = permission(call, sharing, &right);
    // The host or `may_watch_at_host` words the refusal.
    allowed(call, request).await.map_err(|_| Bypass::Right)?;
    let ready = call.outside(sharing.feeds.ready(&collection, query)).await;
    if matches!(ready, Err(Bypass::Few)) {
        call.at_host = sharing.feeds.hold_at_host(&collection);
    }
    let feed = ready?;
    // The permission has just been reviewed, or was cached and is still valid.
    right.extend(permission.validity());
    Ok((feed, permission))
}

/// The planned resource, in the whole host. `None` if the host does not serve it, or if its versions may not be numbers, as
/// those of an aggregated API.
pub(super) async fn collection(call: &Call<'_>, planned: &Uri) -> Option<Collection> {
    let planned = RequestInfo::parse(&Method::GET, planned.path(), planned.query()).ok()?;
    let planned = planned.resource()?.group_version_resource();
    let known = call.outside(call.services.discovery.resource(planned)).await.ok()??;
    let GroupVersionResource { group, version, resource } = planned;
    let is_built_in = schema::kind_of(group, resource).is_some();
    let kind = (known.custom || is_built_in).then_some(known.kind)?;
    let membership = match (group, resource) {
        ("", "namespaces") => Membership::Namespace,
        (RBAC, "rolebindings") => Membership::NamespacedOrRoot,
        _ if known.namespaced => Membership::Namespaced,
        _ => Membership::Everybody,
    };
    let path = ResourcePath::new(group, version, resource).build();
    Some(Collection { path, api_version: GroupVersion { group, version }.to_string(), kind, is_built_in, membership })
}

/// The right of the caller to a watch. The agent checks it again while the watch is open.
fn permission(call: &Call<'_>, sharing: &Arc<Sharing>, right: &Arc<WatchRight>) -> Permission {
    let check = {
        let (sharing, right) = (Arc::clone(sharing), Arc::clone(right));
        move |validity| -> Check {
            let (sharing, right) = (Arc::clone(&sharing), Arc::clone(&right));
            Box::pin(async move {
                let decision = right.check(validity).await;
                sharing.reviewed(decision.as_ref().ok());
                Some(decision.ok()?.allowed)
            })
        }
    };
    Permission::new(&sharing.rights, &call.api.cluster.name, right.namespace(), sharing.tasks(), check)
}
