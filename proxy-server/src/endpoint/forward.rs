//! The path of a request through the proxy-server.

use std::time::{Duration, SystemTime};

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::Body;
use hyper::body::Incoming;
use protocol::Identity;
use protocol::stream::CLUSTER;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use tunnel::Inbound;

use super::access_log::{Entry, Logged};
use super::body::ResponseBody;
use super::refusal::Refusal;
use super::{Connection, Shared, head, route, upgrade};
use crate::config::Cluster;
use crate::tunnel::{Answer, Lease};

/// For an agent to answer a request's head. Longer than any request of Kubernetes' own may take before its first byte
/// (60 s, `--request-timeout`), so that it only ends what is lost.
const PATIENCE: Duration = Duration::from_secs(75);

/// Route, who, tunnel; and whatever went wrong becomes a Status.
pub(super) async fn forward(shared: &Shared, request: Request<Incoming>, connection: &Connection) -> Response<Logged> {
    let accept = request.headers().get(header::ACCEPT).cloned();
    let mut entry = Entry::begin(&request);
    let response = match exchange(shared, request, connection, &mut entry).await {
        Ok(response) => response,
        Err(refusal) => {
            debug!(%refusal, "refused");
            if let Some(entry) = &mut entry {
                entry.refused(&refusal);
            }
            refusal.into_response(accept.as_ref())
        }
    };
    Logged::response(response, entry)
}

async fn exchange(
    shared: &Shared,
    mut request: Request<Incoming>,
    connection: &Connection,
    entry: &mut Option<Box<Entry>>,
) -> Result<Response<ResponseBody>, Refusal> {
    let cluster = route::route(shared, connection, &mut request)?;
    if let Some(entry) = entry {
        entry.routed(cluster.name.as_str(), request.method(), request.uri());
    }
    let end = shared.registry.end_of(&cluster.name).ok_or_else(|| Refusal::NoCluster(cluster.name.to_string()))?;
    let identity = who(shared, connection, &cluster)?;
    if let (Some(entry), Some(identity)) = (&mut *entry, &identity) {
        entry.identified(&identity.user);
    }
    if upgrade::is_wanted(&request) {
        return upgrade::exchange(shared, request, &cluster, end, identity, entry).await;
    }
    let head = tunnelled(&mut request, &cluster, identity)?;
    let absent = |absent| Refusal::no_agent(absent, head.uri().path());
    let tunnel = shared.registry.tunnel(&cluster.name).map_err(absent)?;
    let bodiless = request.body().is_end_stream();
    let (sender, answer) = tunnel.open(head, bodiless).await?.split();
    if !bodiless {
        let body = request.into_body();
        shared.tasks.spawn("request body", async move {
            if let Err(error) = tunnel::outbound::send_body(body, sender).await {
                debug!(%error, "request body ended early");
            }
        });
    }
    let (response, lease) = answered(answer, &cluster, &end).await?;
    if let Some(entry) = entry {
        entry.heard(response.headers());
    }
    let length = response.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let (mut parts, inbound) = response.into_parts();
    head::response(&mut parts.headers);
    Ok(Response::from_parts(parts, ResponseBody::tunnel(inbound.with_length(length), lease, end)))
}

/// The agent's answer, unless it takes too long or the cluster goes meanwhile.
pub(super) async fn answered(
    answer: Answer,
    cluster: &Cluster,
    end: &CancellationToken,
) -> Result<(Response<Inbound>, Lease), Refusal> {
    tokio::select! {
        answered = timeout(PATIENCE, answer.wait()) => Ok(answered.map_err(|_| Refusal::Silent)??),
        () = end.cancelled() => Err(Refusal::NoCluster(cluster.name.to_string())),
    }
}

/// The identity that a certificate proves. A certificate that is not this cluster's is refused even if a token is there
/// as well: the client is not who it believes to be.
fn who(shared: &Shared, connection: &Connection, cluster: &Cluster) -> Result<Option<Identity>, Refusal> {
    let ca = shared.client_cas.get(&cluster.name).ok_or_else(|| Refusal::NoCluster(cluster.name.to_string()))?;
    Ok(connection.peer.identify(&ca.borrow(), SystemTime::now())?)
}

/// The head of a request as the agent gets it.
pub(super) fn tunnelled<B>(
    request: &mut Request<B>,
    cluster: &Cluster,
    identity: Option<Identity>,
) -> Result<Request<()>, Refusal> {
    let mut head = Request::new(());
    let headers = request.headers_mut();
    head::request(headers)?;
    *head.headers_mut() = std::mem::take(headers);
    let headers = head.headers_mut();
    headers.remove(header::HOST);
    let name = HeaderValue::from_str(cluster.name.as_str()).expect("a DNS label is a header value");
    headers.insert(CLUSTER, name);
    if let Some(identity) = identity {
        identity.write(headers);
    }
    *head.method_mut() = request.method().clone();
    // The authority means nothing to the agent, but HTTP/2 wants one.
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(Scheme::HTTPS);
    uri.authority = Some(Authority::from_static("atoll"));
    let target = request.uri().path_and_query().cloned();
    uri.path_and_query = Some(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
    *head.uri_mut() = Uri::from_parts(uri).map_err(|_| Refusal::BadTarget)?;
    Ok(head)
}
