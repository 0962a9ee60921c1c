//! The etcd of a host: the calls `Range` and `Put` of its gRPC API (etcd's `api/etcdserverpb/rpc.proto`).
//!
//! A gRPC call is an HTTP/2 request whose body is one message with a prefix of five bytes, and whose outcome is in the
//! trailers (`doc/PROTOCOL-HTTP2.md` in grpc/grpc).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, header};
use http_body_util::{BodyExt as _, Full, Limited};
use kube_wire::proto::{Reader, Writer};
use ops::drain::Tasks;
use tokio::time::timeout;

use crate::client::{self, Connection};
use crate::target::Target;

/// A connection to etcd.
pub(crate) struct Etcd {
    target: Target,
    connection: Connection<Full<Bytes>>,
}

const RANGE: &str = "/etcdserverpb.KV/Range";
const PUT: &str = "/etcdserverpb.KV/Put";
/// The length of the prefix of a message: a flag for compression, and the length of the message.
const PREFIX: usize = 5;
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum size of a response, in bytes. By default, etcd accepts requests of up to 1.5 MiB (`--max-request-bytes`).
const MAX_RESPONSE: usize = 4 << 20;

// === impl Etcd ===

impl Etcd {
    /// Connects to etcd at this `http://` URL.
    pub(crate) async fn connect(url: &str, tasks: &Tasks) -> anyhow::Result<Arc<Self>> {
        let target = Target::of_url(url)?;
        let connection = Connection::open(&target, tasks).await.context("cannot connect to etcd")?;
        Ok(Arc::new(Self { target, connection }))
    }

    /// The value of a key. `None` if etcd does not have the key.
    pub(crate) async fn get(&self, key: &str) -> anyhow::Result<Option<Vec<u8>>> {
        // RangeRequest: key = 1. RangeResponse: kvs = 2. KeyValue: value = 5.
        let mut request = Writer::new();
        request.bytes(1, key.as_bytes());
        let response = self.call(RANGE, request).await?;
        let Some(pair) = field(&response, 2)? else { return Ok(None) };
        // The encoding omits an empty value.
        Ok(Some(field(pair, 5)?.unwrap_or_default().to_vec()))
    }

    /// Writes the value of a key.
    pub(crate) async fn put(&self, key: &str, value: &[u8]) -> anyhow::Result<()> {
        // PutRequest: key = 1, value = 2.
        let mut request = Writer::new();
        request.bytes(1, key.as_bytes());
        request.bytes(2, value);
        self.call(PUT, request).await.map(drop)
    }

    async fn call(&self, method: &'static str, message: Writer) -> anyhow::Result<Bytes> {
        let body = Full::new(framed(&message.into_bytes())?);
        let mut request = client::request(&self.target, Method::POST, self.target.uri(method)?, body);
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        request.headers_mut().insert(header::TE, HeaderValue::from_static("trailers"));
        let exchange = async {
            let mut connection = self.connection.share().context("the connection cannot be shared")?;
            let (head, body) = connection.send(request).await?.into_parts();
            ensure!(head.status.is_success(), "{}", head.status);
            let body = Limited::new(body, MAX_RESPONSE).collect().await.map_err(anyhow::Error::from_boxed)?;
            // If a call fails at once, its status is in the head (a Trailers-Only response).
            succeeded(body.trailers().unwrap_or(&head.headers))?;
            unframed(body.to_bytes())
        };
        let response =
            timeout(CALL_TIMEOUT, exchange).await.unwrap_or_else(|_| Err(anyhow::anyhow!("no response in time")));
        response.with_context(|| format!("etcd: {method}"))
    }
}

fn framed(message: &[u8]) -> anyhow::Result<Bytes> {
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len())?);
    framed.put_slice(message);
    Ok(framed.freeze())
}

fn unframed(mut body: Bytes) -> anyhow::Result<Bytes> {
    ensure!(body.len() >= PREFIX && body[0] == 0, "the response is not an uncompressed message");
    let message = body.split_off(PREFIX);
    ensure!(
        message.len() == u32::from_be_bytes([body[1], body[2], body[3], body[4]]) as usize,
        "the length of the response is not the one in its prefix"
    );
    Ok(message)
}

fn succeeded(trailers: &HeaderMap) -> anyhow::Result<()> {
    let text = |name| trailers.get(name).and_then(|value| value.to_str().ok());
    let status = text("grpc-status").context("the response has no status")?;
    ensure!(status == "0", "status {status}: {}", text("grpc-message").unwrap_or_default());
    Ok(())
}

/// The bytes of the first field with this number. `None` if the message does not have it.
fn field(message: &[u8], number: u32) -> anyhow::Result<Option<&[u8]>> {
    let mut fields = Reader::new(message);
    while let Some(field) = fields.next_field()? {
        if field.number == number {
            return Ok(Some(field.bytes()?));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_prefix() {
        let body = framed(b"abc").unwrap();
        assert_eq!(&body[..], b"\0\0\0\0\x03abc");
        assert_eq!(&unframed(body.clone()).unwrap()[..], b"abc");
        for cut in 0..body.len() {
            assert!(unframed(body.slice(..cut)).is_err(), "{cut}");
        }
        assert!(unframed(Bytes::from_static(b"\x01\0\0\0\x03abc")).is_err());
    }

    #[test]
    fn a_call_succeeds_only_with_status_0() {
        let trailers = |pairs: &[(&'static str, &'static str)]| {
            succeeded(
                &pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect(),
            )
        };
        assert!(trailers(&[("grpc-status", "0")]).is_ok());
        let error = trailers(&[("grpc-status", "5"), ("grpc-message", "no key")]).unwrap_err();
        assert_eq!(error.to_string(), "status 5: no key");
        assert!(trailers(&[]).is_err());
    }
}
