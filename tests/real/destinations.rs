//! Layer 4: addresses at a site that are no API servers.

mod lossy;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{Shutdown, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::process::Process;
use atoll_tests::{Site, eventually, paths, site};
use libtest_mimic::Trial;

use crate::trial::trial;

/// The number of keys that the database gets at once.
const KEYS: usize = 20_000;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("destinations::a_database_and_a_session", a_database_and_a_session),
        trial("destinations::both_sides_must_allow_them", both_sides_must_allow_them),
        trial("destinations::a_connection_ends_with_its_right", a_connection_ends_with_its_right),
    ];
    // Some containers have no TUN devices.
    if Path::new("/dev/net/tun").exists() {
        trials.push(trial("destinations::a_lossy_network_loses_nothing", lossy::a_lossy_network_loses_nothing));
    }
    trials
}

/// A site with destinations. The clients' proxy-server is not that of the agent.
struct World {
    site: Site,
    database: Process,
    database_port: u16,
    session: Session,
    agent: Process,
}

/// A server that reads to the end, and then responds.
struct Session {
    port: u16,
    accepted: Arc<AtomicUsize>,
}

/// `atoll forward` at a local port.
struct Forward {
    child: Child,
    port: u16,
}

/// A real database with its own client, and a session in which the client first ends its direction.
fn a_database_and_a_session() -> anyhow::Result<()> {
    let world = World::start()?;
    let forward = world.listen(&format!("127.0.0.1:{}", world.database_port))?;
    // The proxy-server learns of the agent from the other one.
    eventually(CONDITION_TIMEOUT, || {
        let shown = forward.database(&["ping"], "")?;
        ensure!(shown.trim() == "PONG", "{shown}");
        Ok(())
    })?;
    let inserted = forward.database(&["--pipe"], &insertion()?)?;
    ensure!(inserted.contains(&format!("errors: 0, replies: {KEYS}")), "{inserted}");
    ensure!(forward.database(&["dbsize"], "")?.trim() == KEYS.to_string());
    ensure!(forward.database(&["get", "key:19999"], "")?.trim() == "value 19999");
    // A subscription gets messages that other connections send later.
    let mut subscriber = forward.client(&["subscribe", "news"]).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(subscriber.stdout.take().context("no stdout")?).lines();
    let mut next = || lines.next().context("the subscription ended")?.context("no line");
    ensure!(next()? == "subscribe" && next()? == "news" && next()? == "1");
    ensure!(forward.database(&["publish", "news", "hello"], "")?.trim() == "1");
    ensure!(next()? == "message" && next()? == "news" && next()? == "hello");
    subscriber.kill()?;
    subscriber.wait()?;

    let text = "one line\n".repeat(50_000);
    let (shown, error) = world.forward(&format!("localhost:{}", world.session.port), "jane", &text)?;
    ensure!(shown == text.to_uppercase(), "{} bytes: {error}", shown.len());
    let log = world.site.server.log();
    ensure!(log.contains("user=\"jane\"") || log.contains("user=jane"), "{log}");
    Ok(())
}

/// Commands for many keys, in the protocol of redis, as its documentation recommends for mass insertion.
fn insertion() -> anyhow::Result<String> {
    let mut commands = String::new();
    for number in 0..KEYS {
        let words = ["SET".to_owned(), format!("key:{number}"), format!("value {number}")];
        commands.push_str("*3\r\n");
        for word in &words {
            write!(commands, "${}\r\n{word}\r\n", word.len())?;
        }
    }
    Ok(commands)
}

/// Only a certificate of the cluster with the right group, an address of the proxy-server's list, and one of the agent's list lead to a
/// destination. In all other cases, nothing connects to it.
fn both_sides_must_allow_them() -> anyhow::Result<()> {
    let mut world = World::start()?;
    let session = format!("localhost:{}", world.session.port);
    let refused = |world: &World, destination: &str, user: &str, text: &str| {
        let (shown, error) = world.forward(destination, user, "hello")?;
        ensure!(shown.is_empty() && error.contains(text), "{destination} for {user}: {shown} {error}");
        anyhow::Ok(())
    };
    // Another cluster's user.
    refused(&world, &session, "eve", "no access to")?;
    // Without a certificate, with curl.
    let proxy = format!("https://127.0.0.1:{}", world.site.ports.proxy);
    let output = Command::new("curl")
        .args(["-sS", "--proxy", &proxy, "--proxy-cacert", &world.text("serving-ca.crt"), "--proxytunnel"])
        .args(["--proxy-header", "atoll-cluster: home", &format!("http://{session}/")])
        .output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && error.contains("403"), "{error}");
    // Not in the list of the proxy-server; the same port by another name; and not in the list of the agent.
    refused(
        &world,
        &format!("127.0.0.1:{}", world.session.port),
        "jane",
        "is not among the destinations of cluster home",
    )?;
    refused(&world, "127.0.0.1:1", "jane", "is not among the destinations of cluster home")?;
    refused(&world, "127.0.0.2:6", "jane", "not among this agent's destinations")?;
    ensure!(world.session.accepted.load(Ordering::Relaxed) == 0, "somebody has connected");

    // Nobody listens, and then the agent is away.
    world.database.kill()?;
    let database = format!("127.0.0.1:{}", world.database_port);
    refused(&world, &database, "jane", "the connection was refused")?;
    world.agent.kill()?;
    eventually(CONDITION_TIMEOUT, || refused(&world, &session, "jane", "has no agent connected"))
}

/// The operator removes the database from the list while a client uses it.
fn a_connection_ends_with_its_right() -> anyhow::Result<()> {
    let world = World::start()?;
    let database = format!("127.0.0.1:{}", world.database_port);
    let forward = world.listen(&database)?;
    eventually(CONDITION_TIMEOUT, || {
        let shown = forward.database(&["ping"], "")?;
        ensure!(shown.trim() == "PONG", "{shown}");
        Ok(())
    })?;
    let mut subscriber = forward.client(&["subscribe", "news"]).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(subscriber.stdout.take().context("no stdout")?).lines();
    ensure!(lines.next().context("the subscription ended")?? == "subscribe");
    let file = world.site.file("server.yaml");
    let text = std::fs::read_to_string(&file)?;
    let list = format!("\"127.0.0.0/8:{}\", ", world.database_port);
    ensure!(text.contains(&list), "{text}");
    std::fs::write(&file, text.replace(&list, ""))?;
    eventually(CONDITION_TIMEOUT, || {
        let log = world.site.server.log();
        ensure!(log.contains("the client may no longer reach the destination"), "{log}");
        Ok(())
    })?;
    let (shown, error) = world.forward(&database, "jane", "PING\r\n")?;
    ensure!(shown.is_empty() && error.contains("is not among the destinations"), "{shown} {error}");
    subscriber.kill()?;
    subscriber.wait()?;
    Ok(())
}

// === impl World ===

impl World {
    fn start() -> anyhow::Result<Self> {
        let (session, database_port) = (Session::start()?, paths::free_port());
        let lists = |more: &str| format!("[\"127.0.0.0/8:{database_port}\", \"localhost:{}\"{more}]", session.port);
        let entry = |name: &str, destinations: &str| {
            let files = format!("clusters/{name}/client-ca");
            format!(
                "{{name: {name}, agents: [site-d], mode: physical, apiServer: {name}.site:6443, clientCA: {{certificate: {files}.crt, \
                 key: {files}.key}}, destinations: {destinations}}}"
            )
        };
        // The proxy-server also allows an address that the agent does not allow.
        let home = entry("home", &lists(", \"127.0.0.2:6\""));
        let site =
            Site::start_pair(&[&home, &entry("other", "[\"127.0.0.2:6\"]")], &["home", "other"], "proxy: {tls: true}")?;
        for (user, cluster) in [("jane", "home"), ("eve", "other")] {
            site::atoll(&["certs", "client", user, "--cluster", cluster, "--dir", &site.dir().display().to_string()])?;
            for end in ["crt", "key"] {
                std::fs::copy(
                    site.file(&format!("clusters/{cluster}/users/{user}.{end}")),
                    site.file(&format!("{user}.{end}")),
                )?;
            }
        }
        let database = start_database(&site, database_port)?;
        let mut agent = site.agent(
            "site-d",
            &format!("destinations: {}\nphysicalClusters: [{{name: home, apiServer: 10.9.0.1:6443}}]", lists("")),
        )?;
        agent.printed("tunnel established")?;
        Ok(Self { site, database, database_port, session, agent })
    }

    /// The path of a file.
    fn text(&self, name: &str) -> String {
        self.site.file(name).display().to_string()
    }

    fn command(&self, destination: &str, user: &str) -> Command {
        let mut command = Command::new(paths::binary("atoll"));
        command.args(["forward", destination, "--cluster", "home"]);
        command.args(["--proxy", &format!("https://127.0.0.1:{}", self.site.ports.proxy)]);
        command.args(["--ca", &self.text("serving-ca.crt")]);
        command.args([
            "--certificate",
            &self.text(&format!("{user}.crt")),
            "--key",
            &self.text(&format!("{user}.key")),
        ]);
        command
    }

    /// The output and the errors of `atoll forward` with this input.
    fn forward(&self, destination: &str, user: &str, input: &str) -> anyhow::Result<(String, String)> {
        let mut command = self.command(destination, user);
        exchange(command.stderr(Stdio::piped()), input)
    }

    fn listen(&self, destination: &str) -> anyhow::Result<Forward> {
        let mut command = self.command(destination, "jane");
        let mut child = command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().context("no stdout")?).read_line(&mut line)?;
        let bound = line.split(' ').nth(2).context("no address")?;
        let port = bound.rsplit(':').next().context("no port")?.parse().with_context(|| line.clone())?;
        Ok(Forward { child, port })
    }
}

fn start_database(site: &Site, port: u16) -> anyhow::Result<Process> {
    let (port_text, dir) = (port.to_string(), site.dir().display().to_string());
    let words = ["--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--dir", &dir];
    let mut database = Process::start("redis-server", "redis-server".as_ref(), &words, site.file("redis.log"))?;
    database.printed("Ready to accept connections")?;
    Ok(database)
}

// === impl Session ===

impl Session {
    fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (port, accepted) = (listener.local_addr()?.port(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&accepted);
        std::thread::spawn(move || {
            for mut socket in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::Relaxed);
                let mut text = String::new();
                if socket.read_to_string(&mut text).is_ok() {
                    let _ = socket.write_all(text.to_uppercase().as_bytes());
                }
                let _ = socket.shutdown(Shutdown::Write);
            }
        });
        Ok(Self { port, accepted })
    }
}

// === impl Forward ===

impl Forward {
    fn client(&self, words: &[&str]) -> Command {
        let mut command = Command::new("redis-cli");
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]).args(words);
        command
    }

    /// The output of the database's client with this input.
    fn database(&self, words: &[&str], input: &str) -> anyhow::Result<String> {
        let (shown, error) = exchange(self.client(words).stderr(Stdio::piped()), input)?;
        ensure!(error.is_empty(), "{error}");
        Ok(shown)
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command with this input. Returns its output and its errors.
fn exchange(command: &mut Command, input: &str) -> anyhow::Result<(String, String)> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    let input = input.to_owned();
    // The command may respond before it has read everything, or not read at all.
    let writing = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output()?;
    drop(writing.join());
    Ok((String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?))
}
