//! Thousands of agents that lose their proxy-server at the same time: how long they need to come back, and what they cost while they
//! are idle.
//!
//! The agents are tasks of this process. Their connections are real: each has its own certificate, TLS, registration and HTTP/2
//! connection, made by the code of the agent (the crate `dial`). They serve no requests, but they keep the stream of offers open.
//! All of them connect to loopback only.

use std::fmt::Write as _;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use dial::routes::{Tunnels, Verdicts};
use dial::{Dial, Egress, Service, offers, streams};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::Request;
use ops::drain::Tasks;
use ops::files::Watched;
use ops::pki::Authority;
use ops::tls::Identity;
use ops::workers::Workers;
use protocol::registration::{Mode, Offer};
use protocol::stream::StreamKind;
use protocol::{AgentId, Registration};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tunnel::{Budget, Inbound};

use crate::child::Process;
use crate::process::{NamedProcess, Usage};

/// Measure a proxy-server that thousands of agents lose at the same time.
///
/// Starts a proxy-server and simulated agents, one tunnel for each. Prints how long they need to connect, what an idle tunnel costs the
/// proxy-server, and, after the proxy-server was killed and started again, how long all of them need to come back.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of agents.
    #[arg(long, value_name = "N", default_value = "5000")]
    agents: NonZeroUsize,

    /// A directory for the files and logs of the run. It must not exist.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// The directory with the binary proxy-server.
    #[arg(long, value_name = "DIR", default_value = "target/release")]
    bin: PathBuf,

    /// The time for which the tunnels are idle, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    idle: u64,

    /// The time for which there is no proxy-server, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    down: u64,
}

/// The time limit for all agents to connect.
const LIMIT: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The interval between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Offers one cluster, and refuses all requests.
#[derive(Clone, Debug)]
struct Idle {
    agent: AgentId,
    offers: watch::Sender<Arc<[Offer]>>,
    unread: Arc<Budget>,
    tasks: Tasks,
}

/// A proxy-server on loopback.
struct Server {
    program: PathBuf,
    config: PathBuf,
    log: PathBuf,
}

/// Runs the measurement.
pub(crate) async fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let count = args.agents.get();
    let files = ops::machine::open_files();
    ensure!(
        files.is_none_or(|files| files > count as u64 + 100),
        "{count} agents need more open files: raise `ulimit -n`"
    );
    std::fs::create_dir(&args.dir).with_context(|| format!("cannot create {}", args.dir.display()))?;
    let [serving, agents] = ["serving CA", "agent CA"].map(|name| Authority::create(name, LIFETIME));
    let (serving, agents) = (serving?, agents?);
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let server = Server::new(args, port, &serving, &agents)?;
    let mut process = server.start().await?;
    let empty = usage(&process)?;

    writeln!(out, "{count} agents: creating certificates")?;
    let tunnels = Arc::new(Tunnels::default());
    // An agent opens another tunnel while its threads are busy, if it has another thread. These agents share their threads, and such a
    // tunnel would measure this program. So each thread is a set of its own.
    let started = (0..ops::workers::cores().get()).map(|_| Workers::start(NonZeroUsize::MIN));
    let started = started.collect::<Result<Vec<_>, _>>()?;
    let (tasks, unread) = (Tasks::new(), Budget::new(protocol::settings::BUFFER_BUDGET));
    let mut dials = Vec::with_capacity(count);
    for number in 0..count {
        let agent: AgentId = name(number).parse()?;
        let (tls, identity) = identity(&serving, &agents, &agent)?;
        let (tunnels, workers) = (Arc::clone(&tunnels), started[number % started.len()].0.clone());
        let service = Idle::new(agent, &unread, tasks.child())?;
        let (egress, tasks) = (Arc::new(Egress::default()), tasks.child());
        let backoff = dial::BACKOFF_OF_AGENTS;
        dials.push(Dial { tls, identity, egress, service, backoff, tasks, tunnels, workers });
    }

    let began = Instant::now();
    for dial in dials {
        let server = format!("127.0.0.1:{port}").parse()?;
        tasks.spawn_until_cancelled("dial", dial.keep(server, dial::no_callers()));
    }
    connected(&tunnels, count, began, out).await?;
    let up = usage(&process)?;
    report(out, "all agents have connected", began.elapsed(), empty, up, count)?;

    sleep(Duration::from_secs(args.idle)).await;
    let idle = usage(&process)?;
    report(out, "they were idle", Duration::from_secs(args.idle), up, idle, count)?;
    let bytes = (idle.memory.rss_kb.saturating_sub(empty.memory.rss_kb)) * 1024 / count as u64;
    writeln!(out, "an idle tunnel: {bytes} bytes of memory at the proxy-server")?;

    process.kill()?;
    while tunnels.count() > 0 {
        sleep(POLL_INTERVAL).await;
    }
    sleep(Duration::from_secs(args.down)).await;
    let began = Instant::now();
    let process = server.start().await?;
    let empty = usage(&process)?;
    connected(&tunnels, count, began, out).await?;
    let what = format!("all agents are back after the proxy-server was away for {} s", args.down);
    report(out, &what, began.elapsed(), empty, usage(&process)?, count)?;
    tasks.cancel();
    Ok(())
}

fn name(number: usize) -> String {
    format!("site-{number}")
}

/// Waits until all agents have a tunnel.
async fn connected(tunnels: &Tunnels, count: usize, began: Instant, out: &mut impl Write) -> anyhow::Result<()> {
    let mut shown = Instant::now();
    loop {
        let up = tunnels.count();
        if up == count {
            return Ok(());
        }
        if began.elapsed() > LIMIT {
            bail!("{up} of {count} agents are connected after {LIMIT:?}");
        }
        if shown.elapsed() > PROGRESS {
            writeln!(out, "  {up} of {count} after {:.1} s", began.elapsed().as_secs_f64())?;
            out.flush()?;
            shown = Instant::now();
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn usage(process: &Process) -> anyhow::Result<Usage> {
    NamedProcess { name: "proxy-server".to_owned(), pid: process.id() }.usage()
}

fn report(
    out: &mut impl Write,
    what: &str,
    time: Duration,
    before: Usage,
    after: Usage,
    count: usize,
) -> anyhow::Result<()> {
    let cpu = after.cpu.saturating_sub(before.cpu);
    let each = cpu / u32::try_from(count)?;
    let (from, to) = (before.memory.rss_kb / 1024, after.memory.rss_kb / 1024);
    let (time, seconds) = (time.as_secs_f64(), cpu.as_secs_f64());
    writeln!(
        out,
        "{what}: {time:.1} s; proxy-server: {seconds:.2} s of CPU, {each:?} for each; RSS {from} -> {to} MiB"
    )?;
    Ok(out.flush()?)
}

/// The TLS settings of one agent.
/// The TLS settings of an agent, with a new certificate.
fn identity(
    serving: &Authority,
    agents: &Authority,
    agent: &AgentId,
) -> anyhow::Result<(Arc<ClientConfig>, Watched<Identity>)> {
    let mut roots = RootCertStore::empty();
    for certificate in ops::pki::certificates_from_pem(serving.certificate_pem().as_bytes())? {
        roots.add(certificate)?;
    }
    let pair = agents.issue_client(agent.as_str(), &[""; 0], LIFETIME)?;
    let chain = ops::pki::certificates_from_pem(pair.certificate.as_bytes())?;
    let key = ops::pki::key_from_pem(pair.key.expose().as_bytes())?;
    let builder = ClientConfig::builder_with_protocol_versions(&[&rustls::version::TLS13]);
    let mut config = builder.with_root_certificates(roots).with_client_auth_cert(chain, key)?;
    config.alpn_protocols = vec![protocol::upgrade::ALPN.to_vec()];
    let identity = Identity::from_pem(pair.certificate.as_bytes(), pair.key.expose().as_bytes())?;
    Ok((Arc::new(config), Watched::fixed(identity)))
}

// === impl Idle ===

impl Idle {
    fn new(agent: AgentId, unread: &Arc<Budget>, tasks: Tasks) -> anyhow::Result<Self> {
        let offer = Offer::new(agent.as_str().parse()?, Mode::Physical);
        Ok(Self { agent, offers: watch::Sender::new([offer].into()), unread: Arc::clone(unread), tasks })
    }
}

impl Service for Idle {
    fn registration(&self) -> Registration {
        dial::registration(&self.agent, "storm", self.offers.borrow().to_vec())
    }

    fn serve<S>(
        self,
        io: S,
        stop: &dial::Stop,
        verdicts: Verdicts,
    ) -> impl Future<Output = Result<String, h2::Error>> + Send
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let (tasks, stop, ended) = (self.tasks.clone(), stop.clone(), CancellationToken::new());
        let draining = ended.clone();
        let serve = move |request: Request<RecvStream>, mut respond: SendResponse<Bytes>| {
            if StreamKind::of(request.method(), false, request.headers()) != Ok(StreamKind::Offers) {
                return respond.send_reset(Reason::REFUSED_STREAM);
            }
            let (offers, body) = (self.offers.subscribe(), Inbound::new(request.into_body(), &self.unread));
            let (verdicts, ended) = (verdicts.clone(), ended.clone());
            // It ends with the tunnel.
            let tell = async move { drop(offers::tell(offers, body, respond, &verdicts, ended).await) };
            tasks.spawn_until_cancelled("offers", tell);
        };
        let stopping = async move { stop.requested().await };
        streams::accept(io, stopping, move || draining.cancel(), |_| (), serve)
    }
}

// === impl Server ===

impl Server {
    /// Writes the files of a proxy-server that allows each agent one cluster.
    fn new(args: &Args, port: u16, serving: &Authority, agents: &Authority) -> anyhow::Result<Self> {
        let path = |file: &str| args.dir.join(file);
        let write =
            |file: &str, text: &str| std::fs::write(path(file), text).with_context(|| path(file).display().to_string());
        write("serving-ca.crt", serving.certificate_pem())?;
        write("serving-ca.key", serving.pem().key.expose())?;
        write("agent-ca.crt", agents.certificate_pem())?;
        let mut yaml = format!(
            "apiVersion: atoll.dev/v1alpha1\n\
             kind: ProxyServerConfiguration\n\
             listeners: {{proxy: 127.0.0.1:0, endpoint: 127.0.0.1:0, agents: 127.0.0.1:{port}, probes: 127.0.0.1:0, \
             admin: 127.0.0.1:0}}\n\
             servingCA: {{certificate: serving-ca.crt, key: serving-ca.key}}\n\
             agentCA: {{certificate: agent-ca.crt}}\n\
             clusters:\n"
        );
        for name in (0..args.agents.get()).map(name) {
            // Writing to a String cannot fail.
            let _ =
                writeln!(yaml, "- {{name: {name}, agents: [{name}], mode: physical, apiServer: \"127.0.0.1:6443\"}}");
        }
        write("server.yaml", &yaml)?;
        Ok(Self { program: args.bin.join("proxy-server"), config: path("server.yaml"), log: path("server.log") })
    }

    /// Starts the process, and waits until it accepts connections.
    async fn start(&self) -> anyhow::Result<Process> {
        let mut process = Process::start("proxy-server", &self.program, &self.config, self.log.clone())?;
        let deadline = Instant::now() + LIMIT;
        while process.printed("ready")? == 0 {
            ensure!(Instant::now() < deadline, "the proxy-server is not ready; its log is {}", self.log.display());
            sleep(POLL_INTERVAL).await;
        }
        Ok(process)
    }
}
