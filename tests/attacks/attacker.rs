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

use crate::traffic::{CONFIG_MAPS, NUMBER, Sent, Traffic, VERSION, Who};

/// The first line of the process's output.
pub(crate) const BEGUN: &str = "begun";

/// The maximum number of concurrent requests, and of streams on one connection.
const AT_ONCE: usize = 100;

/// The number of connections that requests share.
const CONNECTIONS: usize = 4;

/// The time limit for responses after the last request.
const PATIENCE: Duration = Duration::from_secs(10);

/// The result for a stream or connection that is still open at the end.
const HELD: &str = "held to the end";

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
    clients: HashMap<Who, Http2>,
    /// The sessions, used in turns.
    sessions: tokio::sync::Mutex<HashMap<(Who, usize), Arc<Session>>>,
    answers: Mutex<BTreeMap<String, u64>>,
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
        *requests = vec![Sent::harmless()];
    }
    let [admin, user] = [&args.admin, &args.user].map(|file| Credentials::of(&Kubectl::new(file.clone())));
    let (admin, user) = (admin?, user?);
    let mut clients = HashMap::new();
    for (who, client) in [
        (Who::Nobody, Http2::anonymous(&admin.authority)?),
        (Who::Token, Http2::anonymous(&admin.authority)?),
        (Who::Admin, Http2::with(&admin)?),
        (Who::User, Http2::with(&user)?),
    ] {
        clients.insert(who, client.from(Ipv4Addr::new(127, 0, 0, 2)));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let attacker = Arc::new(Attacker {
        endpoint: args.endpoint,
        proxy: args.proxy,
        cluster: args.cluster.clone(),
        end: Instant::now() + Duration::from_secs(args.seconds),
        clients,
        sessions: tokio::sync::Mutex::default(),
        answers: Mutex::default(),
    });
    let mut out = std::io::stdout();
    writeln!(out, "{BEGUN}")?;
    out.flush()?;
    runtime.block_on(Attacker::attack(&attacker, traffic));
    for (answer, times) in &*attacker.answers() {
        writeln!(out, "{times} {answer}")?;
    }
    out.flush()?;
    // Open requests hold runtimes of their own, which tasks of this runtime must not drop.
    std::process::exit(0);
}

// === impl Attacker ===

impl Attacker {
    async fn attack(attacker: &Arc<Self>, traffic: Traffic) {
        match traffic {
            Traffic::Requests(rate, requests) => Self::request_all(attacker, rate, requests).await,
            Traffic::Held { rate, window, sent } => Self::hold_all(attacker, rate, None, window, sent).await,
            Traffic::Watched { rate, most, watch, changes: (changes, change) } => match attacker.version().await {
                Ok(version) => {
                    let watch = Sent { path: watch.path.replace(VERSION, &version), ..watch };
                    tokio::join!(
                        Self::hold_all(attacker, rate, Some(most), 0, watch),
                        Self::request_all(attacker, changes, change)
                    );
                }
                Err(error) => attacker.note(Ok(Err(error))),
            },
            Traffic::Resets(rate) => {
                Self::at(attacker, rate, Some(AT_ONCE), |attacker, number| async move { attacker.reset(number).await })
                    .await;
            }
            Traffic::Connections { rate, kept } => {
                Self::at(
                    attacker,
                    rate,
                    None,
                    move |attacker, number| async move { attacker.connect(number, kept).await },
                )
                .await;
            }
        }
    }

    async fn request_all(attacker: &Arc<Self>, rate: u32, requests: Vec<Sent>) {
        let requests: Arc<[Sent]> = requests.into();
        Self::at(attacker, rate, Some(AT_ONCE), move |attacker, number| {
            let requests = Arc::clone(&requests);
            async move { attacker.request(number, &requests[number % requests.len()]).await }
        })
        .await;
    }

    async fn hold_all(attacker: &Arc<Self>, rate: u32, most: Option<usize>, window: u32, sent: Sent) {
        let sent = Arc::new(sent);
        Self::at(attacker, rate, most, move |attacker, number| {
            let sent = Arc::clone(&sent);
            async move { attacker.hold(number, window, &sent).await }
        })
        .await;
    }

    /// Acts so many times per second until the end, regardless of the results, with a maximum of concurrent acts.
    async fn at<F>(attacker: &Arc<Self>, rate: u32, most: Option<usize>, act: impl Fn(Arc<Self>, usize) -> F)
    where
        F: Future<Output = anyhow::Result<String>> + Send + 'static,
    {
        let mut ticks = interval(Duration::from_secs(1) / rate);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut running = JoinSet::new();
        let mut number = 0;
        while ticks.tick().await < attacker.end {
            while let Some(done) = running.try_join_next() {
                attacker.note(done);
            }
            if most.is_some_and(|most| running.len() >= most) {
                continue;
            }
            running.spawn(act(Arc::clone(attacker), number));
            number += 1;
        }
        while let Ok(Some(done)) = timeout_at(attacker.end + PATIENCE, running.join_next()).await {
            attacker.note(done);
        }
        if !running.is_empty() {
            *attacker.answers().entry("no answer".to_owned()).or_default() += running.len() as u64;
        }
    }

    fn note(&self, done: Result<anyhow::Result<String>, tokio::task::JoinError>) {
        let answer = match done {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => format!("{error:#}").chars().take(60).collect(),
            Err(error) => error.to_string(),
        };
        *self.answers().entry(answer).or_default() += 1;
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn request(&self, number: usize, sent: &Sent) -> anyhow::Result<String> {
        let (request, body) = self.head(number, sent)?;
        let place = (sent.who, number % CONNECTIONS);
        let session = self.session(place, 1 << 20).await?;
        let result = session.exchange(request.map(|()| body)).await;
        if result.is_err() {
            self.sessions.lock().await.remove(&place);
        }
        Ok(result?.0.to_string())
    }

    /// The latest resource version.
    async fn version(&self) -> anyhow::Result<String> {
        let (request, _) = self.head(0, &Sent::new(Who::Admin, "GET", CONFIG_MAPS))?;
        let session = self.session((Who::Admin, 0), 1 << 20).await?;
        let mut body = session.send(request, true).await?.0.await?.into_body();
        let mut list = Vec::new();
        while let Some(chunk) = body.data().await {
            list.extend_from_slice(&chunk?);
        }
        let list: Value = serde_json::from_slice(&list)?;
        Ok(list["metadata"]["resourceVersion"].as_str().context("a list has a version")?.to_owned())
    }

    /// Never ends the body, and does not read the response.
    async fn hold(&self, number: usize, window: u32, sent: &Sent) -> anyhow::Result<String> {
        let (request, body) = self.head(number, sent)?;
        let session = self.session((sent.who, number / AT_ONCE), window).await?;
        let (answer, mut stream) = session.send(request, sent.method == "GET").await?;
        let held = async {
            tokio::join!(upload(&mut stream, body, false), async {
                let answer = answer.await?;
                self.note(Ok(Ok(answer.status().as_u16().to_string())));
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
        let sent = Sent::harmless();
        let place = (sent.who, number % CONNECTIONS);
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

    /// In turns: nothing, the beginning of a TLS handshake, TLS with the beginning of HTTP/2, and TLS through the
    /// proxy.
    async fn connect(&self, number: usize, kept: bool) -> anyhow::Result<String> {
        let client = &self.clients[&Who::Nobody];
        let ended = match number % 4 {
            0 => self.stay(client.tcp(self.endpoint).await?, kept).await,
            1 => {
                let mut stream = client.tcp(self.proxy).await?;
                stream.write_all(&[0x16, 0x03, 0x01]).await?;
                self.stay(stream, kept).await
            }
            2 => {
                let mut stream = client.direct(self.endpoint, &self.cluster).await?;
                stream.write_all(b"PRI * HTTP").await?;
                self.stay(stream, kept).await
            }
            _ => self.stay(client.proxied(self.proxy, &self.cluster).await?, kept).await,
        };
        Ok(if ended { "ended" } else { HELD }.to_owned())
    }

    /// Whether the other side closed the connection before the attack ended.
    async fn stay(&self, stream: impl tokio::io::AsyncRead + Unpin, kept: bool) -> bool {
        !kept || timeout_at(self.end, ended(stream)).await.is_ok()
    }

    fn head(&self, number: usize, sent: &Sent) -> anyhow::Result<(Request<()>, Bytes)> {
        let path = sent.path.replace(NUMBER, &number.to_string());
        let mut request =
            Request::builder().method(sent.method).uri(format!("https://{}.atoll.internal{path}", self.cluster));
        if !sent.media.is_empty() {
            request = request.header("content-type", sent.media);
        }
        if !sent.accept.is_empty() {
            request = request.header("accept", sent.accept);
        }
        if sent.who == Who::Token {
            request = request.header("authorization", format!("Bearer stranger-{number}"));
        }
        let body = match std::str::from_utf8(&sent.body) {
            Ok(text) if text.len() < 4096 => text.replace(NUMBER, &number.to_string()).into(),
            _ => sent.body.clone(),
        };
        Ok((request.body(())?, body))
    }

    async fn session(&self, place: (Who, usize), window: u32) -> anyhow::Result<Arc<Session>> {
        let mut sessions = self.sessions.lock().await;
        if let Some(session) = sessions.get(&place) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(self.clients[&place.0].session(self.endpoint, &self.cluster, window).await?);
        sessions.insert(place, Arc::clone(&session));
        Ok(session)
    }
}
