//! One GET request and its complete response, on a separate connection, a shared one, or a new one for each request.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Uri};
use http_body_util::{BodyExt as _, Empty};
use ops::drain::Tasks;
use ops::log::chain;
use tokio::sync::Mutex;

use super::pace::{Exchange, Failure, FailureKind};
use crate::client::{self, Connection};
use crate::target::Target;

type Open = Connection<Empty<Bytes>>;

/// Sends the requests of one worker.
pub(super) struct HttpExchange {
    target: Target,
    uri: Uri,
    tasks: Tasks,
    reuse: Reuse,
    /// The connection between two requests.
    open: Option<Open>,
}

#[derive(Clone)]
enum Reuse {
    Never,
    Own,
    /// A worker that finds the connection closed opens a new one for all workers.
    Shared(Arc<Mutex<Option<Open>>>),
}

// === impl HttpExchange ===

impl HttpExchange {
    /// The exchanges of `workers` on this number of connections. Each connection opens with the first request.
    pub(super) fn new(
        target: &Target,
        tasks: &Tasks,
        workers: u32,
        connections: u32,
        fresh: bool,
    ) -> anyhow::Result<Vec<Self>> {
        let uri = target.own_uri()?;
        let shared: Vec<Reuse> = (0..connections)
            .map(|_| match (fresh, connections < workers) {
                (true, _) => Reuse::Never,
                (false, true) => Reuse::Shared(Arc::default()),
                (false, false) => Reuse::Own,
            })
            .collect();
        let of = |reuse: &Reuse| Self {
            target: target.clone(),
            uri: uri.clone(),
            tasks: tasks.clone(),
            reuse: reuse.clone(),
            open: None,
        };
        Ok(shared.iter().cycle().take(workers as usize).map(of).collect())
    }

    async fn connection(&mut self) -> Result<Open, Failure> {
        if let Some(open) = self.open.take().filter(Connection::is_open) {
            return Ok(open);
        }
        let Reuse::Shared(shared) = &self.reuse else {
            return Open::open(&self.target, &self.tasks).await.map_err(|error| connect(&error));
        };
        let mut shared = shared.lock().await;
        if shared.as_ref().is_none_or(|open| !open.is_open()) {
            *shared = Some(Open::open(&self.target, &self.tasks).await.map_err(|error| connect(&error))?);
        }
        let handle = shared.as_ref().and_then(Connection::share);
        handle.ok_or_else(|| Failure {
            kind: FailureKind::Connect,
            example: "the connection cannot be shared".to_owned(),
        })
    }

    async fn receive(&self, open: &mut Open) -> Result<u64, Failure> {
        let request = client::request(&self.target, Method::GET, self.uri.clone(), Empty::new());
        let response = open.send(request).await.map_err(|error| broken(&error))?;
        let status = response.status();
        let mut body = response.into_body();
        let (mut bytes, mut beginning) = (0, Bytes::new());
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() else { continue };
            bytes += data.len() as u64;
            if beginning.is_empty() && !status.is_success() {
                beginning = data;
            }
        }
        if status.is_success() {
            return Ok(bytes);
        }
        let example = String::from_utf8_lossy(&beginning).trim_end().chars().take(300).collect();
        Err(Failure { kind: FailureKind::Status(status.as_u16()), example })
    }
}

impl Exchange for HttpExchange {
    async fn exchange(&mut self) -> Result<u64, Failure> {
        let mut open = self.connection().await?;
        let result = self.receive(&mut open).await;
        let is_fresh = matches!(self.reuse, Reuse::Never);
        let is_complete = !matches!(&result, Err(Failure { kind: FailureKind::Broken, .. }));
        // If a timeout drops this future, it also drops an HTTP/1.1 connection.
        self.open = (is_complete && !is_fresh).then_some(open);
        result
    }
}

fn connect(error: &dyn Error) -> Failure {
    Failure { kind: FailureKind::Connect, example: chain(error).to_string() }
}

fn broken(error: &dyn Error) -> Failure {
    Failure { kind: FailureKind::Broken, example: chain(error).to_string() }
}
