//! The HTTP/1.1 server behind [`Pages`].

use std::convert::Infallible;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::time::Duration;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

use super::page_response::PageResponse;
use super::pages::Pages;
use crate::drain::Tasks;
use crate::listen::{Accept, Connection, Listener};

/// The connection limit of a listener of [`Pages`]. Probes are few and short.
pub const MAX_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not 0");

/// How long a connection may wait for its first or next request. A kubelet opens a connection per probe. A Prometheus
/// with a longer interval opens a new one each time.
const IDLE: Duration = Duration::from_secs(15);

/// After this time, a connection ends with its current response, so that no client occupies a slot forever.
const LIFETIME: Duration = Duration::from_secs(300);

/// How long the client may take to read the last response.
const LAST_RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum length of the head of a request. A kubelet's head has 200 bytes.
const MAX_HEAD: usize = 16 << 10;

/// Serves `pages` until `tasks` are cancelled. Then each connection finishes its response. Connections are tasks of
/// `tasks`, named `name`.
///
/// Give it a scope that is cancelled *last*: while the rest of the process drains, `/readyz` must report it, and
/// `/livez` must not fail.
pub async fn serve<L>(listener: Listener<L>, pages: Pages, tasks: Tasks, name: &'static str)
where
    L: Accept<Stream: AsyncRead + AsyncWrite + Unpin + 'static>,
{
    let ending = tasks.clone();
    let is_local = listener.bound().ip().is_loopback();
    listener
        .run(tasks, name, move |connection| {
            let (pages, ending) = (pages.clone(), ending.clone());
            async move { converse(connection, &pages, is_local, &ending).await }
        })
        .await;
}

/// Whether a request may reach a listener on loopback. A web page can let its own name resolve to 127.0.0.1 (DNS rebinding),
/// and then read the responses in the operator's browser. Such a request names the page's host.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else { return true };
    let Ok(authority) = Authority::try_from(host.as_bytes()) else { return false };
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

async fn converse<S>(connection: Connection<S>, pages: &Pages, is_local: bool, tasks: &Tasks)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Connection { stream, slot: _slot, .. } = connection;
    let service = service_fn(|req: http::Request<Incoming>| async move {
        if is_local && !names_this_machine(req.headers()) {
            let refusal =
                PageResponse::text("this address is on loopback: use localhost or an IP address as the host\n");
            return Ok(refusal.with_status(StatusCode::MISDIRECTED_REQUEST).into_response());
        }
        Ok::<_, Infallible>(pages.answer(req.method(), req.uri(), req.headers()).await)
    });
    let mut conversation = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service)
    );
    let result = tokio::select! {
        result = &mut conversation => result,
        () = async {
            tokio::select! {
                () = tasks.cancelled() => {}
                () = sleep(LIFETIME) => {}
            }
        } => {
            conversation.as_mut().graceful_shutdown();
            match timeout(LAST_RESPONSE_TIMEOUT, conversation).await {
                Ok(result) => result,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = result {
        // The peer caused it, and it affects only the peer.
        tracing::debug!(error = %crate::log::chain(&error), "connection ended");
    }
}

#[cfg(test)]
mod tests;
