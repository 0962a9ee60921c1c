//! The registration: the only HTTP/1.1 request of a tunnel.

use std::error::Error;
use std::io;
use std::pin::pin;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use protocol::upgrade::{ACCEPTANCE, PATH, PROTOCOL};
use protocol::{Acceptance, Authority, ProtocolVersion, Refusal, RefusalReason, Registration};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::DialError;

/// The maximum length of a refusal, in bytes.
const MAX_REFUSAL: usize = 16 * 1024;

/// An established tunnel.
pub(super) struct Established {
    pub(super) io: TokioIo<Upgraded>,
    /// What the proxy-server says about itself.
    pub(super) acceptance: Acceptance,
}

/// Registers. Afterwards, the connection is the tunnel.
pub(super) async fn register<S>(
    stream: S,
    server: &Authority,
    registration: &Registration,
) -> Result<Established, DialError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let request = Request::post(PATH)
        .header(header::HOST, server.to_string())
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, PROTOCOL)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(registration.encode())))
        .expect("constant headers and a host:port are a request");
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let acceptance = response.headers().get(ACCEPTANCE);
            let acceptance = acceptance.and_then(|value| Acceptance::decode(value.as_bytes()));
            let acceptance = acceptance.ok_or_else(|| DialError::Refused { refusal: not_atoll(server) })?;
            // The proxy-server decides whether it accepts an older agent. Only another major version is refused here.
            if acceptance.protocol.major != ProtocolVersion::CURRENT.major {
                let why = format!("the proxy-server speaks tunnel protocol {}", acceptance.protocol);
                return Err(DialError::Refused { refusal: Refusal::new(RefusalReason::Incompatible, why) });
            }
            let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
            return Ok(Established { io: TokioIo::new(upgraded), acceptance });
        }
        let body = Limited::new(response.into_body(), MAX_REFUSAL).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Err(DialError::Refused { refusal: Refusal::decode(status, &body) })
    };
    drive(connection.with_upgrades(), exchange).await
}

/// Drives a connection until the exchange on it is done.
pub(super) async fn drive<T, E: From<DialError>>(
    connection: impl Future<Output = hyper::Result<()>>,
    exchange: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let (mut connection, mut exchange) = (pin!(connection), pin!(exchange));
    tokio::select! {
        biased;
        done = &mut exchange => done,
        ended = &mut connection => {
            ended.map_err(broken)?;
            // The connection has ended or switched protocols, so the exchange is ready.
            exchange.await
        }
    }
}

/// A TLS alert during the registration is about the certificate of the agent, because the rest of the handshake is
/// complete.
pub(super) fn broken(error: hyper::Error) -> DialError {
    let io = error.source().and_then(<dyn Error>::downcast_ref::<io::Error>);
    match io.and_then(io::Error::get_ref).and_then(<dyn Error + Send + Sync>::downcast_ref) {
        Some(alert @ rustls::Error::AlertReceived(_)) => DialError::Certificate(alert.clone()),
        _ => DialError::Http(error),
    }
}

fn not_atoll(server: &Authority) -> Refusal {
    let why = format!("{server} switched protocols without a valid `{ACCEPTANCE}` header: is it `listeners.agents`?");
    Refusal::new(RefusalReason::Unknown, why)
}
