//! The attacker: a separate process with the lowest priority and its own loopback address.

use std::collections::{BTreeMap, HashMap};
use std::future::{Future, pending};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use atoll_tests::http2::{Session, ended, upload};
use atoll_tests::{Credentials, Http2, Kubectl};
use bytes::Bytes;
use http::Request;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use crate::traffic::{CONFIG_MAPS, Credential, NUMBER, RequestTemplate, Traffic, VERSION};

/// The process prints this line when it begins.
pub(crate) const BEGUN: &str = "begun";

/// The maximum number of concurrent requests, and of streams on one connection.
const AT_ONCE: usize = 100;

/// The number of connections that requests share.
const CONNECTIONS: usize = 4;

/// The time limit for responses after the last request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The result for a stream or connection that is open until the end.
const HELD: &str = "open until the end";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    pub(crate) attack: String,
    #[arg(long)]
    pub(crate) endpoint: u16,
    #[arg(long)]
    pub(crate) proxy: u16,
    #[arg(long)]
    pub(crate) cluster: String,
    #[arg(long)]
    pub(crate) admin: PathBuf,
    #[arg(long)]
    pub(crate) user: PathBuf,
    #[arg(long)]
    pub(crate) seconds: u64,
    #[arg(long)]
    pub(crate) control: bool,
}

struct Attacker {
    endpoint: u16,
    proxy: u16,
    cluster: String,
    end: Instant,
    clients: HashMap<Credential, Http2>,
    /// The connections. Requests use them in turns.
    sessions: tokio::sync::Mutex<HashMap<(Credential, usize), Arc<Session>>>,
    responses: Mutex<BTreeMap<String, u64>>,
}

// === impl Args ===

impl Args {
    /// The arguments as on the command line.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![self.attack.clone()];
        for (flag, value) in [
            ("--endpoint", self.endpoint.to_string()),
            ("--proxy", self.proxy.to_string()),
            ("--cluster", self.cluster.clone()),
            ("--admin", self.admin.display().to_string()),
            ("--user", self.user.display().to_string()),
            ("--seconds", self.seconds.to_string()),
        ] {
            arguments.extend([flag.to_owned(), value]);
        }
        arguments.extend(self.control.then(|| "--control".to_owned()));
        arguments
    }
}

/// Prints [`BEGUN`], sends this traffic, and prints how often it got each response.
pub(crate) fn perform(args: &Args, mut traffic: Traffic) -> anyhow::Result<()> {
    if let (true, Traffic::Requests(_, requests)) = (args.control, &mut traffic) {
        *requests = vec![RequestTemplate::harmless()];
    }
    let [admin, user] = [&args.admin, &args.user].map(|file| Credentials::of(&Kubectl::new(file.clone())));
    let (admin, user) = (admin?, user?);
    let mut clients = HashMap::new();
    for (credential, client) in [
        (Credential::None, Http2::anonymous(&admin.authority)?),
        (Credential::InvalidToken, Http2::anonymous(&admin.authority)?),
        (Credential::Admin, Http2::with(&admin)?),
        (Credential::User, Http2::with(&user)?),
    ] {
        clients.insert(credential, client.from(Ipv4Addr::new(127, 0, 0, 2)));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let attacker = Arc::new(Attacker {
        endpoint: args.endpoint,
        proxy: args.proxy,
        cluster: args.cluster.clone(),
        end: Instant::now() + Duration::from_secs(args.seconds),
        clients,
        sessions: tokio::sync::Mutex::default(),
        responses: Mutex::default(),
    });
    let mut out = std::io::stdout();
    writeln!(out, "{BEGUN}")?;
    out.flush()?;
    runtime.block_on(Attacker::attack(&attacker, traffic));
    for (response, times) in &*attacker.responses() {
        writeln!(out, "{times} {response}")?;
    }
    out.flush()?;
    // Open requests own runtimes, which tasks of this runtime must not drop.
    std::process::exit(0);
}

// === impl Attacker ===

impl Attacker {
    async fn attack(attacker: &Arc<Self>, traffic: Traffic) {
        match traffic {
            Traffic::Requests(rate, requests) => Self::request_all(attacker, rate, requests).await,
            Traffic::Held { rate, window, sent } => Self::hold_all(attacker, rate, None, window, sent).await,
            Traffic::Watched { rate, max_watches, watch, changes: (changes, change) } => match attacker.version().await
            {
                Ok(version) => {
                    let watch = RequestTemplate { path: watch.path.replace(VERSION, &version), ..watch };
                    tokio::join!(
                        Self::hold_all(attacker, rate, Some(max_watches), 0, watch),
                        Self::request_all(attacker, changes, change)
                    );
                }
                Err(error) => attacker.count(Ok(Err(error))),
            },
            Traffic::Resets(rate) => {
                Self::at(attacker, rate, Some(AT_ONCE), |attacker, number| async move { attacker.reset(number).await })
                    .await;
            }
            Traffic::Connections { rate, keep_open } => {
                Self::at(attacker, rate, None, move |attacker, number| async move {
                    attacker.connect(number, keep_open).await
                })
                .await;
            }
        }
    }

    async fn request_all(attacker: &Arc<Self>, rate: u32, requests: Vec<RequestTemplate>) {
        let requests: Arc<[RequestTemplate]> = requests.into();
        Self::at(attacker, rate, Some(AT_ONCE), move |attacker, number| {
            let requests = Arc::clone(&requests);
            async move { attacker.request(number, &requests[number % requests.len()]).await }
        })
        .await;
    }

    async fn hold_all(
        attacker: &Arc<Self>,
        rate: u32,
        max_concurrent: Option<usize>,
        window: u32,
        sent: RequestTemplate,
    ) {
        let sent = Arc::new(sent);
        Self::at(attacker, rate, max_concurrent, move |attacker, number| {
            let sent = Arc::clone(&sent);
            async move { attacker.hold(number, window, &sent).await }
        })
        .await;
    }

    /// Calls `act` at this rate until the end, with a maximum of concurrent calls. Does not wait for the results.
    async fn at<F>(attacker: &Arc<Self>, rate: u32, max_concurrent: Option<usize>, act: impl Fn(Arc<Self>, usize) -> F)
    where
        F: Future<Output = anyhow::Result<String>> + Send + 'static,
    {
        let mut ticks = interval(Duration::from_secs(1) / rate);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut running = JoinSet::new();
        let mut number = 0;
        while ticks.tick().await < attacker.end {
            while let Some(done) = running.try_join_next() {
                attacker.count(done);
            }
            if max_concurrent.is_some_and(|max| running.len() >= max) {
                continue;
            }
            running.spawn(act(Arc::clone(attacker), number));
            number += 1;
        }
        while let Ok(Some(done)) = timeout_at(attacker.end + RESPONSE_TIMEOUT, running.join_next()).await {
            attacker.count(done);
        }
        if !running.is_empty() {
            *attacker.responses().entry("no response".to_owned()).or_default() += running.len() as u64;
        }
    }

    fn count(&self, done: Result<anyhow::Result<String>, tokio::task::JoinError>) {
        let response = match done {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => format!("{error:#}").chars().take(60).collect(),
            Err(error) => error.to_string(),
        };
        *self.responses().entry(response).or_default() += 1;
    }

    fn responses(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn request(&self, number: usize, sent: &RequestTemplate) -> anyhow::Result<String> {
        let (request, body) = self.head(number, sent)?;
        let place = (sent.credential, number % CONNECTIONS);
        let session = self.session(place, 1 << 20).await?;
        let result = session.exchange(request.map(|()| body)).await;
        if result.is_err() {
            self.sessions.lock().await.remove(&place);
        }
        Ok(result?.0.to_string())
    }

    /// The latest resource version.
    async fn version(&self) -> anyhow::Result<String> {
        let (request, _) = self.head(0, &RequestTemplate::new(Credential::Admin, "GET", CONFIG_MAPS))?;
        let session = self.session((Credential::Admin, 0), 1 << 20).await?;
        let mut body = session.send(request, true).await?.0.await?.into_body();
        let mut list = Vec::new();
        while let Some(chunk) = body.data().await {
            list.extend_from_slice(&chunk?);
        }
        let list: Value = serde_json::from_slice(&list)?;
        Ok(list["metadata"]["resourceVersion"].as_str().context("the list has no resourceVersion")?.to_owned())
    }

    /// Sends a request whose body does not end, and does not read the response.
    async fn hold(&self, number: usize, window: u32, sent: &RequestTemplate) -> anyhow::Result<String> {
        let (request, body) = self.head(number, sent)?;
        let session = self.session((sent.credential, number / AT_ONCE), window).await?;
        let (response, mut stream) = session.send(request, sent.method == "GET").await?;
        let held = async {
            tokio::join!(upload(&mut stream, body, false), async {
                let response = response.await?;
                self.count(Ok(Ok(response.status().as_u16().to_string())));
                pending::<anyhow::Result<()>>().await
            })
        };
        match timeout_at(self.end, held).await {
            Ok(((), result)) => result.map(|()| String::new()),
            Err(_) => Ok(HELD.to_owned()),
        }
    }

    /// Resets a request at once (CVE-2023-44487).
    async fn reset(&self, number: usize) -> anyhow::Result<String> {
        let sent = RequestTemplate::harmless();
        let place = (sent.credential, number % CONNECTIONS);
        let session = self.session(place, 1 << 20).await?;
        match session.send(self.head(number, &sent)?.0, true).await {
            Ok(stream) => drop(stream),
            Err(error) => {
                self.sessions.lock().await.remove(&place);
                return Err(error);
            }
        }
        Ok("reset".to_owned())
    }

    /// Opens a connection. In turns, it sends nothing, the beginning of a TLS handshake, TLS and the beginning of
    /// HTTP/2, or TLS through the proxy.
    async fn connect(&self, number: usize, keep_open: bool) -> anyhow::Result<String> {
        let client = &self.clients[&Credential::None];
        let ended = match number % 4 {
            0 => self.stay(client.tcp(self.endpoint).await?, keep_open).await,
            1 => {
                let mut stream = client.tcp(self.proxy).await?;
                stream.write_all(&[0x16, 0x03, 0x01]).await?;
                self.stay(stream, keep_open).await
            }
            2 => {
                let mut stream = client.direct(self.endpoint, &self.cluster).await?;
                stream.write_all(b"PRI * HTTP").await?;
                self.stay(stream, keep_open).await
            }
            _ => self.stay(client.proxied(self.proxy, &self.cluster).await?, keep_open).await,
        };
        Ok(if ended { "ended" } else { HELD }.to_owned())
    }

    /// Waits for the end. Returns whether the peer has closed the connection before.
    async fn stay(&self, stream: impl tokio::io::AsyncRead + Unpin, keep_open: bool) -> bool {
        !keep_open || timeout_at(self.end, ended(stream)).await.is_ok()
    }

    fn head(&self, number: usize, sent: &RequestTemplate) -> anyhow::Result<(Request<()>, Bytes)> {
        let path = sent.path.replace(NUMBER, &number.to_string());
        let mut request =
            Request::builder().method(sent.method).uri(format!("https://{}.atoll.internal{path}", self.cluster));
        if !sent.media.is_empty() {
            request = request.header("content-type", sent.media);
        }
        if !sent.accept.is_empty() {
            request = request.header("accept", sent.accept);
        }
        if sent.credential == Credential::InvalidToken {
            request = request.header("authorization", format!("Bearer stranger-{number}"));
        }
        let body = match std::str::from_utf8(&sent.body) {
            Ok(text) if text.len() < 4096 => text.replace(NUMBER, &number.to_string()).into(),
            _ => sent.body.clone(),
        };
        Ok((request.body(())?, body))
    }

    async fn session(&self, place: (Credential, usize), window: u32) -> anyhow::Result<Arc<Session>> {
        let mut sessions = self.sessions.lock().await;
        if let Some(session) = sessions.get(&place) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(self.clients[&place.0].session(self.endpoint, &self.cluster, window).await?);
        sessions.insert(place, Arc::clone(&session));
        Ok(session)
    }
}
