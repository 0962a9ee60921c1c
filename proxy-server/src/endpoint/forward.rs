//! The path of a request through the proxy-server.
//!
//! | # | phase | where | what it does | why there |
//! |---|---|---|---|---|
//! | 1 | record | `Record::begin` | begins the log line, the metrics, and the request's part of the idle timer | nothing may be refused without a line |
//! | 2 | route | `route` | finds the cluster, and removes `/clusters/<name>` from the path | the CA, the limits and the metrics are those of a cluster |
//! | 3 | authenticate | `Peer`, `Caller` | verifies the client certificate, and remembers tokens that an agent has accepted | limits of a user need the user |
//! | 4 | limits | `admit` | connections of a user, abandoned requests, streams | before the first byte enters the tunnel |
//! | 5 | transform | `head`, `Admitted::head` | removes headers of the connection and of Atoll, and sets those of the identity | only an admitted request is worth the work |
//! | 6 | send | `Admitted::open` | chooses a tunnel, opens a stream, and forwards the body | |
//! | 7 | deadline | `answered` | waits for the head of the response, until a deadline, or until the cluster is removed | |
//! | 8 | transform | `Admitted::heard`, `hold` | learns who the caller is, and attaches the resources of the request to the body | the agent alone can verify a token |
//! | 9 | refuse | `Refusal` | an error of any phase becomes a Status | |
//! | 10 | record | `Logged` | ends the log line and the metrics with the body | a response has ended when its body has |

use std::pin::pin;
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, Uri, header};
use hyper::body::Incoming;
use kube_wire::{RequestInfo, Verb};
use tokio::time::timeout;
use tracing::debug;
use tunnel::Inbound;

use super::admit::{Admitted, admit, unread_body};
use super::body::ResponseBody;
use super::connection::Connection;
use super::logged::Logged;
use super::record::Record;
use super::refusal::Refusal;
use super::upload::Upload;
use super::{head, upgrade};
use crate::limits::Unanswered;
use crate::tunnel::{Answer, Lease};

/// The time for an agent to send the response head of a request that is not long-running. Kubernetes allows such a
/// request 60 s until its first byte (`--request-timeout`), so this longer time ends only lost requests.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(75);

/// Admits and forwards a request. An error becomes a Status.
pub(super) async fn forward(request: Request<Incoming>, connection: &Connection) -> Response<Logged> {
    let running = connection.requests.begin();
    let accept = request.headers().get(header::ACCEPT).cloned();
    let mut record = Record::begin(&request);
    let (head, body) = request.into_parts();
    let mut upload = Some(Upload::new(&head, body));
    let request = Request::from_parts(head, ());
    let mut unanswered = None;
    let exchanged = exchange(request, &mut upload, connection, &mut record, &mut unanswered).await;
    if let Some(unanswered) = unanswered {
        unanswered.answered();
    }
    let response = match exchanged {
        Ok(response) => response,
        Err(refusal) => {
            debug!(%refusal, "refused");
            record.refused(&refusal);
            refusal.into_response(accept.as_ref())
        }
    };
    if let Some(unwanted) = upload {
        unwanted.forget(&connection.services.tasks);
    }
    Logged::response(response, record, running)
}

async fn exchange(
    mut request: Request<()>,
    upload: &mut Option<Upload>,
    connection: &Connection,
    record: &mut Record,
    unanswered: &mut Option<Unanswered>,
) -> Result<Response<ResponseBody>, Refusal> {
    let services = &*connection.services;
    let (mut admitted, waiting) = admit(connection, &mut request, record)?;
    *unanswered = Some(waiting);
    if upgrade::is_wanted(&request) {
        return upgrade::exchange(request, connection, admitted, record).await;
    }
    if admitted.is_anonymous() {
        // Agents read no body of such callers, so the body does not enter the tunnel.
        request.headers_mut().remove(header::CONTENT_LENGTH);
    }
    let body = upload.take_if(|upload| !upload.is_empty() && !admitted.is_anonymous());
    let unread = body.as_ref().map(|_| unread_body(content_length(request.headers())));
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let head = admitted.head(&mut request)?;
    let absent = |absent| Refusal::no_agent(absent, uri.path());
    let tunnel = services.registry.tunnel(&admitted.cluster.name).map_err(absent)?;
    let (sender, answer) = admitted.open(services, &tunnel, head, unread).await?;
    let upload = body.map(|body| body.send(sender, &services.tasks));
    let (response, mut lease) = answered(answer, &admitted, || is_long_running(&method, &uri)).await?;
    record.heard(response.headers());
    admitted.heard(connection, &response, &mut lease);
    let length = content_length(response.headers());
    let (mut parts, inbound) = response.into_parts();
    head::response(&mut parts.headers);
    let end = admitted.end.clone();
    let held = admitted.hold(connection, lease, upload);
    Ok(Response::from_parts(parts, ResponseBody::tunnel(inbound.with_length(length), held, end)))
}

/// The agent's response, unless it takes too long or the cluster is removed meanwhile.
pub(super) async fn answered(
    answer: Answer,
    admitted: &Admitted,
    is_long_running: impl FnOnce() -> bool,
) -> Result<(Response<Inbound>, Lease), Refusal> {
    let answered = async {
        let mut answer = pin!(answer.wait());
        match timeout(RESPONSE_TIMEOUT, &mut answer).await {
            Ok(answered) => Ok(answered?),
            Err(_) if is_long_running() => Ok(answer.await?),
            Err(_) => Err(Refusal::Silent),
        }
    };
    tokio::select! {
        answered = answered => answered,
        () = admitted.end.cancelled() => Err(Refusal::NoCluster(admitted.cluster.name.to_string())),
    }
}

/// Like `LongRunningFunc` in kubernetes' `pkg/controlplane/apiserver/config.go`. The server of a pod may respond only
/// after it has read an upload of any length.
fn is_long_running(method: &Method, uri: &Uri) -> bool {
    RequestInfo::parse(method, uri.path(), uri.query()).is_ok_and(|info| {
        info.resource().is_some_and(|request| {
            let subresource = request.subresource().unwrap_or_default();
            request.verb() == Verb::Watch || ["attach", "exec", "log", "portforward", "proxy"].contains(&subresource)
        })
    })
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_not_cut() {
        for (method, uri, lasts) in [
            (Method::GET, "/api/v1/pods?watch=1", true),
            (Method::GET, "/api/v1/namespaces/a/pods/b/log?follow=true", true),
            (Method::POST, "/api/v1/namespaces/a/pods/b:80/proxy/upload", true),
            (Method::PUT, "/api/v1/namespaces/a/services/b/proxy/", true),
            (Method::POST, "/api/v1/namespaces/a/pods/b/exec?command=sh", true),
            (Method::GET, "/api/v1/pods", false),
            (Method::POST, "/api/v1/namespaces/a/pods/b/eviction", false),
            (Method::GET, "/version?watch=1", false),
            (Method::GET, "/readyz", false),
        ] {
            assert_eq!(is_long_running(&method, &uri.parse().unwrap()), lasts, "{method} {uri}");
        }
    }
}
