//! Requests for the host: their identity, headers and target.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use kube_wire::media::Accept;
use kube_wire::query::Query;
use kube_wire::status::Reason;
use kube_wire::{ResourceRequest, Status, Target};
use protocol::audit_id::AUDIT_ID;
use protocol::stream::PREFIX;

use crate::exchange::api_request::{ApiRequest, As, INCLUDE_OBJECT};
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use caller::identity::USER;
use host_client::RequestBody;

/// The maximum length of a URI, in bytes (`MAX_LEN` in the `uri` module of the crate `http`).
const LONGEST_TARGET: usize = 65_534;

/// A request upstream. `target` is in host names.
pub(crate) fn request(
    api: &ApiRequest<'_>,
    method: Method,
    target: &str,
    identity: As,
    body: RequestBody,
) -> Result<Request<RequestBody>, Refusal> {
    // First, because to copy these headers is cheaper than to add them. None that says who somebody is follows.
    let mut headers = match identity {
        As::Caller => api.caller.host.headers(),
        As::Agent => HeaderMap::new(),
    };
    keep(api, &mut headers);
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri(target)?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Whether the host authorises the caller of this request, because the agent impersonates the caller.
pub(crate) fn is_of_caller(request: &Request<RequestBody>) -> bool {
    request.headers().contains_key(USER)
}

/// Adds the client's headers that go upstream.
fn keep(api: &ApiRequest<'_>, headers: &mut HeaderMap) {
    let is_proxy = api.info.resource().is_some_and(ResourceRequest::is_proxy);
    let is_kept = |name: &HeaderName| if is_proxy { is_end_to_end(name) } else { is_kept(name) };
    for (name, value) in api.headers.iter().filter(|(name, _)| is_kept(name)) {
        headers.append(name, value.clone());
    }
}

/// Replaces `Accept` by its JSON part, or by its protobuf part if there is no other and the engine can read such
/// objects. Also requests the objects of table rows. The response can then be mapped.
pub(crate) fn readable(api: &ApiRequest<'_>, request: &mut Request<RequestBody>) -> Result<(), Refusal> {
    let accept = api.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accept = Accept::parse(accept);
    let only = match (accept.json_only(), api.info.target()) {
        (Err(_), Target::Resource(resource)) if api.program(resource).has_protobuf() => accept.protobuf_only(),
        (json, _) => json,
    };
    let only = only.map_err(|error| Unmapped::refusal(Status::not_acceptable(error), DryRunScope::WithoutBody))?;
    let value = HeaderValue::from_str(only.header())
        .map_err(|_| Refusal::from(Status::bad_request("the Accept header cannot be read")))?;
    request.headers_mut().insert(header::ACCEPT, value);
    if api.wants_bare_rows() {
        let mut query = Query::new(request.uri().query().unwrap_or_default());
        query.set(INCLUDE_OBJECT, "Metadata");
        let target = target(request.uri().path(), &query);
        *request.uri_mut() = uri(&target)?;
    }
    Ok(())
}

/// The path, followed by the query if there is one.
pub(super) fn target(path: &str, query: &Query<'_>) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.as_str()) }
}

/// An upstream target. It may be longer than the client's, because host names are longer and the agent adds parameters.
pub(super) fn uri(target: &str) -> Result<Uri, Refusal> {
    target.parse().map_err(|_| {
        Refusal::from(if target.len() > LONGEST_TARGET {
            let message = format!("the request target with host names has more than {LONGEST_TARGET} bytes");
            Status::failure(414, Reason::Other("".into()), message)
        } else {
            Status::bad_request("the request target is not a path")
        })
    })
}

/// Whether a header of a client's request goes upstream. All others concern credentials, connections or proxies, and are
/// dropped. Requests to the server of a pod or a service keep more: see [`is_end_to_end`].
fn is_kept(name: &HeaderName) -> bool {
    use header::{ACCEPT, CONTENT_TYPE, IF_MODIFIED_SINCE, IF_NONE_MATCH, USER_AGENT};
    matches!(*name, ACCEPT | CONTENT_TYPE | IF_NONE_MATCH | IF_MODIFIED_SINCE | USER_AGENT)
        || *name == AUDIT_ID
        || name.as_str() == "traceparent"
}

/// Whether an API server forwards a header to the server of a pod (`httputil.ReverseProxy`, behind `WithAuthentication`
/// and `WithImpersonation` in apiserver's `pkg/endpoints/filters`). It does not forward headers about one connection
/// (RFC 9110 section 7.6.1), the caller's credentials, and headers by which trusted proxies name the caller. It makes a
/// new handshake.
fn is_end_to_end(name: &HeaderName) -> bool {
    const NOT_FORWARDED: [&str; 12] = [
        "authorization",
        "connection",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    let name = name.as_str();
    !NOT_FORWARDED.contains(&name)
        && !["impersonate-", "sec-websocket-", "x-remote-", PREFIX].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::stream::CLUSTER;

    #[test]
    fn a_pods_own_server_gets_what_is_meant_for_it() {
        let passes = |name: &str| is_end_to_end(&name.parse().unwrap());
        for name in
            ["accept-encoding", "cookie", "content-length", "origin", "range", "x-forwarded-for", "x-request-id"]
        {
            assert!(passes(name), "{name}");
        }
        for name in ["authorization", "impersonate-user", "x-remote-user", CLUSTER.as_str(), "te", "sec-websocket-key"]
        {
            assert!(!passes(name), "{name}");
        }
    }
}
