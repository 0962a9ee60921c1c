//! The tenant: the administrator of another virtual cluster, who sends the same requests at the same rate all the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use atoll_tests::http2::Session;
use atoll_tests::{Http2, Kubectl};
use bytes::Bytes;
use http::Request;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// The time limit for a request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of objects in a list.
const OBJECTS: usize = 20;

pub(crate) struct Tenant {
    connections: Arc<Http2>,
    port: u16,
    cluster: String,
}

/// The latencies and errors of the requests of some phases.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    latencies: BTreeMap<Act, Vec<Duration>>,
    errors: BTreeMap<String, usize>,
}

/// The requests, sent in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Get,
    List,
    /// Until the first event.
    Watch,
    Create,
    /// A GET over a new connection.
    Connect,
}

pub(crate) const ACTS: [Act; 5] = [Act::Get, Act::List, Act::Watch, Act::Create, Act::Connect];

// === impl Tenant ===

impl Tenant {
    /// Creates the objects that it requests.
    pub(crate) fn new(kubectl: &Kubectl, port: u16, cluster: String) -> anyhow::Result<Self> {
        for namespace in ["read", "written"] {
            kubectl.ok(&["create", "namespace", namespace])?;
        }
        for number in 0..OBJECTS {
            kubectl.ok(&["create", "configmap", &format!("c{number}"), "-n", "read", "--from-literal=a=b"])?;
        }
        let credentials = atoll_tests::Credentials::of(kubectl)?;
        Ok(Self { connections: Arc::new(Http2::with(&credentials)?), port, cluster })
    }

    /// Sends requests at this rate for this time. The latency of a request counts from the time at which it was due.
    pub(crate) fn work(&self, rate: u32, time: Duration, outcome: &mut Outcome) -> anyhow::Result<()> {
        let connections = Arc::clone(&self.connections);
        connections.run(async {
            let session = Arc::new(connections.session(self.port, &self.cluster, 1 << 20).await?);
            let mut ticks = interval(Duration::from_secs(1) / rate);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let end = Instant::now() + time;
            let mut running = JoinSet::new();
            let mut acts = ACTS.iter().cycle();
            loop {
                let due = ticks.tick().await;
                if due >= end {
                    break;
                }
                let act = *acts.next().unwrap_or(&Act::Get);
                let (connections, session) = (Arc::clone(&self.connections), Arc::clone(&session));
                let (port, cluster) = (self.port, self.cluster.clone());
                running.spawn(async move {
                    let done = timeout(RESPONSE_TIMEOUT, act.perform(&connections, session, port, &cluster)).await;
                    let result = done.unwrap_or_else(|_| Err(anyhow::anyhow!("no response in {RESPONSE_TIMEOUT:?}")));
                    result.map(|()| (act, due.elapsed())).with_context(|| format!("{act:?}"))
                });
            }
            while let Some(result) = running.join_next().await {
                match result? {
                    Ok((act, latency)) => outcome.latencies.entry(act).or_default().push(latency),
                    Err(error) => *outcome.errors.entry(format!("{error:#}")).or_default() += 1,
                }
            }
            Ok(())
        })
    }
}

// === impl Act ===

impl Act {
    async fn perform(
        self,
        connections: &Http2,
        mut session: Arc<Session>,
        port: u16,
        cluster: &str,
    ) -> anyhow::Result<()> {
        let read = "/api/v1/namespaces/read/configmaps";
        let (path, code) = match self {
            Self::Get | Self::Connect => (format!("{read}/c1"), 200),
            Self::List => (read.to_owned(), 200),
            Self::Watch => (format!("{read}?watch=1&resourceVersion=0"), 200),
            Self::Create => ("/api/v1/namespaces/written/configmaps".to_owned(), 201),
        };
        let uri = format!("https://{cluster}.atoll.internal{path}");
        let body = match self {
            Self::Create => r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"c"}}"#,
            _ => "",
        };
        let request = Request::builder().method(if body.is_empty() { "GET" } else { "POST" }).uri(uri);
        let request = request.header("content-type", "application/json");
        if let Self::Connect = self {
            session = Arc::new(connections.session(port, cluster, 1 << 20).await?);
        }
        let status = if let Self::Watch = self {
            let response = session.send(request.body(())?, true).await?.0.await?;
            let status = response.status().as_u16();
            response.into_body().data().await.context("the watch has no event")??;
            status
        } else {
            session.exchange(request.body(Bytes::from(body))?).await?.0
        };
        ensure!(status == code, "{status}");
        Ok(())
    }
}

// === impl Outcome ===

impl Outcome {
    /// The 99th percentile of lists and of all others, in milliseconds.
    pub(crate) fn p99(&self) -> [f64; 2] {
        [true, false].map(|lists| self.percentile(99, |act| (act == Act::List) == lists))
    }

    /// This percentile of one kind of request, in milliseconds.
    pub(crate) fn percentile_of(&self, percent: usize, act: Act) -> f64 {
        self.percentile(percent, |other| other == act)
    }

    fn percentile(&self, percent: usize, is_selected: impl Fn(Act) -> bool) -> f64 {
        let selected = self.latencies.iter().filter(|(act, _)| is_selected(**act));
        let mut latencies: Vec<_> = selected.flat_map(|(_, latencies)| latencies).collect();
        latencies.sort_unstable();
        let at = (latencies.len() * percent).div_ceil(100).saturating_sub(1);
        latencies.get(at).map_or(f64::INFINITY, |latency| latency.as_secs_f64() * 1e3)
    }

    pub(crate) fn errors(&self) -> &BTreeMap<String, usize> {
        &self.errors
    }
}
