//! Lists of any version that the agent answers from a feed which is open.
//!
//! A client that lists before it watches asks for `resourceVersion=0`, which kube-apiserver answers from its watch cache. As for a
//! [shared watch](crate::exchange::shared_watch), the feed answers the *planned* request, and the agent checks the caller's right.

use feeds::{Bypass, ListQuery};
use http::{Response, Uri};
use kube_wire::gvr::GroupVersionResource;
use rewrite::schema;

use crate::exchange::call::Call;
use crate::exchange::plan::Plan;
use crate::exchange::rights::allowed;
use crate::exchange::shared_watch::{collection, in_json, may_share};
use crate::translate::ResponseTransform;
use host_client::HostBody;

/// The list that a plan requests, if an open feed may serve it, or the reason why it goes to the host. `None` if it is not a list
/// of any version, or if nothing is shared.
pub(super) fn list_query(call: &Call<'_>, plan: &Plan) -> Option<Result<ListQuery, Bypass>> {
    let sharing = call.services.sharing.as_ref()?;
    if !matches!(plan.transform, ResponseTransform::List { .. }) {
        return None;
    }
    let query = may_share(call, sharing, plan).and_then(|cluster| {
        let upstream = &plan.request;
        let query = ListQuery::read(upstream.method(), upstream.uri(), upstream.headers(), cluster)?;
        // Only the host knows the kind of a list of custom objects.
        if is_built_in(call) { Ok(query) } else { Err(Bypass::Class) }
    });
    match query {
        Err(Bypass::Newest | Bypass::Verb) => None,
        query => Some(query),
    }
}

/// Answers a list from a feed. `planned` is the target of the planned request. `None` if the list goes to the host.
pub(super) async fn shared_list(call: &Call<'_>, planned: &Uri, query: ListQuery) -> Option<Response<HostBody>> {
    let (sharing, request) = (call.services.sharing.as_ref()?, call.api.info.resource()?);
    let collection = collection(call, planned).await?;
    let feed = sharing.feeds.synced(&collection)?;
    // The host words the refusal.
    allowed(call, request).await.ok()?;
    let list = feed.list(query)?;
    sharing.count("list");
    Some(in_json(HostBody::produced(list)))
}

fn is_built_in(call: &Call<'_>) -> bool {
    let request = call.api.info.resource();
    request.is_some_and(|request| {
        let GroupVersionResource { group, resource, .. } = request.group_version_resource();
        schema::kind_of(group, resource).is_some()
    })
}
