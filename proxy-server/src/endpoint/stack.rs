//! The path of a request through the proxy-server: one stack of [`tower`] services.
//!
//! ```text
//!           request                                                           response
//!              v                                                                 ^
//! trace        |  a span                                                         |
//! record       |  log line, metrics, idle timer begin          they end with the body; a refusal becomes a Status
//! route        |  which cluster                                                  |
//! authenticate |  which client, by its certificate                                |
//! limits       |  counts among the requests of that client                       |
//! abandoned    |  counts against the client ...                    ... unless there is a result
//! verify       |  which client, by the token of an OIDC issuer                   |
//! transform    |  the head that the agent gets               who the caller is; the head that the client gets
//! prefetch     |  a document about which the agent has just decided: it goes no further
//! deadline     |  a timer, unless the request is long-running                    |
//! removal      |  until the cluster is removed                                   |
//! send         +-> a tunnel, a stream, the body  -->  agent  -->  the head of the response
//! ```
//!
//! Each phase takes a value and returns the value that the next one takes. So the compiler refuses another order:
//!
//! | phase | module | takes | returns | why there |
//! |---|---|---|---|---|
//! | trace | [`trace`](super::trace) | `Request<Incoming>` | the same | the log lines of all phases are in the span |
//! | record | [`record`], [`logged`] | `Request<Incoming>` | [`Recorded`](record::Recorded) | no request may be refused without a line in the access log |
//! | route | [`route`](mod@super::route) | `Recorded` | [`Routed`](super::route::Routed) | CA, limits and metrics are those of a cluster |
//! | authenticate | [`authenticate`](mod@super::authenticate) | `Routed` | [`Authenticated`](super::authenticate::Authenticated) | limits are those of a user |
//! | limits | [`admit`](mod@super::admit) | `Authenticated` | [`Admitted`](super::admit::Admitted) | nothing of a request that is refused enters the tunnel |
//! | abandoned | [`admit`](mod@super::admit) | `Admitted`, [`AbandonGuard`](crate::limits::AbandonGuard) | `Admitted` | only an admitted request makes an agent work |
//! | verify | [`verify`](mod@super::verify) | `Admitted` | the same | a signature costs more than a look-up |
//! | transform | [`transform`], [`head`](super::head), [`upgrade`](super::upgrade) | `Admitted` | [`Outgoing`] | only an admitted request is worth the work |
//! | prefetch | [`prefetch`](super::prefetch) | [`Forward`](super::prefetch::Forward) | what is inside | everything above applies to each request |
//! | deadline | [`deadline`](super::deadline) | [`Timed`](super::deadline::Timed) | what is inside | it drops what is below, and the record must stay |
//! | removal | [`until_removed`](super::until_removed) | [`Lasting`](super::until_removed::Lasting) | what is inside | the same |
//! | send | [`send`](mod@super::send) | `Outgoing` | [`AgentResponse`] | |
//!
//! There is no phase that authorises a request or parses a Kubernetes body. The agent and the host do that.
//!
//! The stack uses `MapRequest` and `service_fn` of tower. Where tower has a layer for a similar purpose (`filter`,
//! `timeout`, `limit`, `load_shed`, `MapResult`), the module of the phase explains why it does not fit. No phase makes a
//! request wait for another one, so the services are always ready. No phase boxes a future, except the wait for the keys of an
//! OIDC issuer.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tower::{Service, ServiceBuilder};

use super::admit::{admit, answered};
use super::authenticate::authenticate;
use super::connection::Connection;
use super::deadline::Deadline;
use super::logged::{self, Logged};
use super::map_result_with::map_result_with;
use super::prefetch::Prefetch;
use super::record;
use super::refusal::Refusal;
use super::route::route;
use super::send::{AgentResponse, Outgoing};
use super::trace::Trace;
use super::transform;
use super::try_map_request::try_map_request;
use super::until_removed::UntilRemoved;
use super::verify::VerifyToken;

/// The stack of one connection, above a service that sends.
pub(super) fn stack<S>(
    connection: Arc<Connection>,
    send: S,
) -> impl Service<Request<Incoming>, Response = Response<Logged>, Error = Infallible, Future: Future + Send> + Clone
where
    S: Service<Outgoing, Response = AgentResponse, Error = Refusal, Future: Send> + Clone + Send,
{
    ServiceBuilder::new()
        .layer_fn(Trace::new)
        .map_request(move |request| record::begin(request, Arc::clone(&connection)))
        .layer(map_result_with(logged::end))
        .layer(try_map_request(route))
        .layer(try_map_request(authenticate))
        .layer(try_map_request(admit))
        .layer(map_result_with(answered))
        .layer_fn(VerifyToken::new)
        .layer(try_map_request(transform::request))
        .layer(map_result_with(transform::response))
        .layer_fn(Prefetch::new)
        .layer_fn(Deadline::new)
        .layer_fn(UntilRemoved::new)
        .service(send)
}

#[cfg(test)]
mod tests;
