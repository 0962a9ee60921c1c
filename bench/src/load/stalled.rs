//! Readers that request a large response and do not read it, to measure their effect on other requests.

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{Method, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use ops::drain::Tasks;

use crate::client::{self, Connection};
use crate::target::Target;

/// Connections, each with an unread response. Dropping this closes them.
pub(super) struct Stalled {
    _readers: Vec<(Connection<Empty<Bytes>>, Response<Incoming>)>,
}

// === impl Stalled ===

impl Stalled {
    /// Opens this number of readers one after the other, each on a separate connection. The response for `path` must be
    /// larger than all buffers on the route.
    pub(super) async fn open(target: &Target, path: &str, number: u32, tasks: &Tasks) -> anyhow::Result<Self> {
        let mut readers = Vec::new();
        for reader in 0..number {
            let open = async {
                let mut connection = Connection::open(target, tasks).await?;
                let request = client::request(target, Method::GET, target.uri(path)?, Empty::new());
                let response = connection.send(request).await?;
                ensure!(response.status().is_success(), "the response is {}", response.status());
                Ok((connection, response))
            };
            readers.push(open.await.with_context(|| format!("stalled reader {reader}"))?);
        }
        Ok(Self { _readers: readers })
    }
}
