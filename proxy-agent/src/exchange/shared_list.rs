//! Lists with `resourceVersion=0` (any version) that the agent answers from an open feed.
//!
//! Informers that list before they watch request `resourceVersion=0`. kube-apiserver answers such a list from its watch cache. As
//! for a [shared watch](crate::exchange::shared_watch), the feed answers the *planned* request, and the agent checks the caller's
//! right.

use feeds::{Bypass, ListQuery};
use http::{Response, Uri};

use crate::exchange::call::Call;
use crate::exchange::cost::take_seats_of_shared_list;
use crate::exchange::plan::Plan;
use crate::exchange::rights::is_allowed_now;
use crate::exchange::shared_watch::{check_shareable, collection, in_json};
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::HostBody;

/// The list that a plan requests, if an open feed may answer it, or the reason why it goes to the host. `None` if it is not a
/// list of any version, or if nothing is shared.
pub(super) fn feed_list_query(call: &Call<'_>, plan: &Plan) -> Option<Result<ListQuery, Bypass>> {
    let sharing = call.services.sharing.as_ref()?;
    let upstream = &plan.request;
    if !matches!(plan.transform, ResponseTransform::List { .. }) || !ListQuery::is_of_any_version(upstream.uri()) {
        return None;
    }
    Some(
        check_shareable(call, sharing, plan)
            .and_then(|cluster| ListQuery::read(upstream.method(), upstream.uri(), upstream.headers(), cluster)),
    )
}

/// Answers a list from a feed. `planned` is the target of the planned request. `None` if the list goes to the host.
pub(super) async fn shared_list(
    call: &mut Call<'_>,
    planned: &Uri,
    query: ListQuery,
) -> Result<Option<Response<HostBody>>, Refusal> {
    let services = call.services;
    let (Some(sharing), Some(collection)) = (&services.sharing, collection(call, planned).await) else {
        return Ok(None);
    };
    // Only the host knows the kind of a list of custom objects.
    let feed = sharing.feeds.synced(&collection).filter(|_| collection.is_built_in);
    let (Some(feed), Some(request)) = (feed, call.api.info.resource()) else { return Ok(None) };
    // The host words the refusal.
    if !is_allowed_now(call, request).await {
        return Ok(None);
    }
    take_seats_of_shared_list(call).await?;
    let Some(list) = feed.list(query) else {
        call.occupied = None;
        return Ok(None);
    };
    sharing.count("list");
    Ok(Some(in_json(HostBody::produced(list))))
}
