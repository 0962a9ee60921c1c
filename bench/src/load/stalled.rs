//! Readers that open something large and then read no more: what they cost the others is the question.

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{Method, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use ops::drain::Tasks;

use crate::client::{self, Connection};
use crate::target::Target;

/// Connections with an answer each that nobody reads. Dropping them lets go.
pub(super) struct Stalled {
    _readers: Vec<(Connection<Empty<Bytes>>, Response<Incoming>)>,
}

// === impl Stalled ===

impl Stalled {
    /// Opens so many, one after the other, each over a connection of its own. The answer to `path` has to be larger than
    /// what lies in buffers on the way.
    pub(super) async fn open(target: &Target, path: &str, number: u32, tasks: &Tasks) -> anyhow::Result<Self> {
        let mut readers = Vec::new();
        for reader in 0..number {
            let open = async {
                let mut connection = Connection::open(target, tasks).await?;
                let request = client::request(target, Method::GET, target.uri(path)?, Empty::new());
                let response = connection.send(request).await?;
                ensure!(response.status().is_success(), "the answer is {}", response.status());
                Ok((connection, response))
            };
            readers.push(open.await.with_context(|| format!("stalled reader {reader}"))?);
        }
        Ok(Self { _readers: readers })
    }
}
