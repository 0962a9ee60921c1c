//! `atoll status`: shows the status of a proxy-server or a proxy-agent, from its admin listener.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use proxy_agent::status::AgentStatus;
use proxy_server::status::ServerStatus;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The timeout of the whole request. The listener is on this machine.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of the document, in bytes. The document for 10,000 clusters has a tenth of this size.
const MAX_STATUS: usize = 32 * 1024 * 1024;

/// Show the status of a proxy-server or a proxy-agent.
///
/// Reads the status from the admin listener (`listeners.admin`). This listener is on loopback, so run the command on
/// the machine of the proxy-server or proxy-agent. For a proxy-server, the status shows the clusters and their agents,
/// the tunnels, and when certificates expire. For a proxy-agent, it shows the tunnels and why one is down, the virtual
/// clusters and whether they are ready, and the API servers of the host.
///
/// In the status of a proxy-server, a cluster is ready if an agent is connected. Only the status of that agent shows
/// whether the agent can serve the cluster.
///
/// Exits with 0 if everything is ready, with 1 if something is not, and with 2 if there is no response. Invalid flags
/// exit with 2 too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Show the status of a proxy-server on this machine\n  \
    atoll status\n\n  \
    # Show the status of a proxy-agent, with more columns\n  \
    atoll status --admin http://127.0.0.1:8094 -o wide\n\n  \
    # List the clusters that are not ready\n  \
    atoll status -o json | jq '.clusters[] | select(.ready | not)'")]
pub(crate) struct Args {
    /// The URL of the admin listener. The default port is 8095 for a proxy-server, and 8094 for a proxy-agent.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8095")]
    admin: Uri,

    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Tables
    Table,
    /// Tables with more columns
    Wide,
    /// The status document
    Json,
}

/// There is no response.
#[derive(Debug)]
pub(crate) struct Unreachable {
    admin: Uri,
}

/// The status of one of the two binaries.
enum Status {
    Server(ServerStatus),
    Agent(AgentStatus),
}

/// Reads the status and prints it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    let request = async { timeout(REQUEST_TIMEOUT, get(&args.admin)).await.context("no response in time")? };
    let document = runtime.block_on(request).map_err(|error| {
        // A wrong URL is a different error from a missing response.
        if error.is::<WrongUrl>() { error } else { error.context(Unreachable { admin: args.admin.clone() }) }
    })?;
    let status = Status::read(&document).with_context(|| format!("{}status", with_slash(&args.admin)))?;
    match args.output {
        Format::Json => writeln!(out, "{document:#}")?,
        Format::Table => out.write_all(status.text(false).as_bytes())?,
        Format::Wide => out.write_all(status.text(true).as_bytes())?,
    }
    Ok(if status.ready() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The URL is not that of an admin listener.
#[derive(Debug, thiserror::Error)]
#[error("--admin {admin}: {problem}")]
struct WrongUrl {
    admin: Uri,
    problem: String,
}

async fn get(admin: &Uri) -> anyhow::Result<Value> {
    let wrong = |problem: String| WrongUrl { admin: admin.clone(), problem };
    let host = match (admin.scheme_str(), admin.host()) {
        (Some("http"), Some(host)) => host.trim_start_matches('[').trim_end_matches(']'),
        _ => return Err(wrong("must be a URL such as http://127.0.0.1:8095".into()).into()),
    };
    let socket = TcpStream::connect((host, admin.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    let authority = admin.authority().map_or("", http::uri::Authority::as_str);
    let request =
        Request::get("/status").header(header::HOST, authority).body(Empty::<Bytes>::new()).context("invalid URL")?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_STATUS).collect().await;
        let body = body
            .map_err(|error| anyhow::anyhow!(error).context("the connection was closed during the response"))?
            .to_bytes();
        anyhow::Ok((status, body))
    };
    // The exchange ends with the response, even if the connection stays open.
    let (status, body) = tokio::select! {
        response = exchange => response?,
        ended = connection => { ended?; bail!("the connection was closed without a response") }
    };
    let document = serde_json::from_slice(&body).ok().filter(|_| status == StatusCode::OK);
    let problem = || {
        format!(
            "it returned {status} without a status document; is it the admin listener of a proxy-server or a proxy-agent?"
        )
    };
    document.ok_or_else(|| wrong(problem()).into())
}

// === impl Status ===

impl Status {
    fn read(document: &Value) -> anyhow::Result<Self> {
        let version = document["apiVersion"].as_str().unwrap_or_default();
        ensure!(
            version == ops::config::API_VERSION,
            "the status has version {version:?}, but this atoll supports {}; use the atoll of the release that is running",
            ops::config::API_VERSION
        );
        match document["kind"].as_str() {
            Some(proxy_server::status::KIND) => Ok(Self::Server(serde_json::from_value(document.clone())?)),
            Some(proxy_agent::status::KIND) => Ok(Self::Agent(serde_json::from_value(document.clone())?)),
            kind => bail!("the document has the kind {kind:?}, which is not a status"),
        }
    }

    fn ready(&self) -> bool {
        match self {
            Self::Server(status) => status.ready,
            Self::Agent(status) => status.ready,
        }
    }

    fn text(&self, wide: bool) -> String {
        match self {
            Self::Server(status) => proxy_server::status::report(status, wide).to_string(),
            Self::Agent(status) => proxy_agent::status::report::report(status, wide).to_string(),
        }
    }
}

// === impl Unreachable ===

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no response from {}: check that the process runs on this machine, and that this is its `listeners.admin`; the \
             default port is 8095 for a proxy-server, and 8094 for a proxy-agent",
            self.admin
        )
    }
}

fn with_slash(admin: &Uri) -> String {
    format!("{}/", admin.to_string().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(ready: bool) -> Value {
        json!({
            "apiVersion": "atoll.dev/v1alpha1", "kind": "ServerStatus", "version": "0.1.0",
            "time": "2026-05-01T12:00:00Z", "ready": ready,
            "clusters": [
                {"name": "ke-beijing", "mode": "virtual", "ready": ready, "tunnels": 0,
                 "since": "2026-05-01T11:55:00Z", "interruptions": 2, "streams": {"used": 3, "limit": 2000},
                 "lastErrors": [{"time": "2026-05-01T11:55:00Z", "count": 1, "code": 503, "fault": "tunnel",
                     "message": "no agent"}],
                 "message": "cluster ke-beijing has no agent connected"},
            ],
            "tunnels": [{"agent": "site-a", "instance": "1", "version": "0.1.0", "protocol": "1.0",
                "since": "2026-05-01T11:00:00Z", "clusters": [], "streams": 3, "roundTripMicros": 512}],
            "links": [{"agent": "site-a", "tunnels": 1, "registeredTunnels": 3, "roundTripMicros": 48_512,
                "receivedBytes": 5_400_000, "sentBytes": 900, "compressedBytes": 1000, "decompressedBytes": 8150}],
            "refusedOffers": [{"cluster": "ke-x", "agent": "site-a", "reason": "NotGranted", "message": "add it"}],
            "certificates": [{"name": "servingCA", "notAfter": "2026-05-11T12:00:00Z"}],
        })
    }

    #[test]
    fn a_server_s_document_is_shown_in_tables() {
        let status = Status::read(&server(false)).unwrap();
        let expected = "\
proxy-server 0.1.0: 0 of 1 clusters have an agent connected

CLUSTER      MODE      AGENT   TUNNELS   FOR
ke-beijing   virtual   -       0         5m    cluster ke-beijing has no agent connected

REFUSED CLUSTER   OF AGENT   REASON
ke-x              site-a     NotGranted   add it

AGENT    UP FOR   STREAMS   VERSION   PROTOCOL
site-a   60m      3         0.1.0     1.0

LINK TO   TUNNELS   REGISTERED   ROUND TRIP   RECEIVED   SENT    COMPRESSION
site-a    1         3            48 ms        5.1 MiB    900 B   8.1 x

CERTIFICATE   EXPIRES                IN
servingCA     2026-05-11T12:00:00Z   10d
";
        assert_eq!((status.text(false).as_str(), status.ready()), (expected, false));
        let wide = status.text(true);
        for line in [
            "CLUSTER      MODE      AGENT   TUNNELS   FOR   INTERRUPTIONS   STREAMS   CONNECTIONS",
            "ke-beijing   virtual   -       0         5m    2               3/2000    -             cluster ke-beijing has no agent connected",
            "ke-beijing       5m    1       503    tunnel   -        no agent",
        ] {
            assert!(wide.lines().any(|found| found == line), "{line}\n{wide}");
        }
        assert!(wide.contains("512 us"));
        assert!(Status::read(&server(true)).unwrap().ready());
    }

    #[test]
    fn the_status_of_an_agent_has_tables() {
        let status = Status::read(&json!({
            "apiVersion": "atoll.dev/v1alpha1", "kind": "AgentStatus", "version": "0.1.0", "agent": "site-a",
            "time": "2026-05-01T12:00:00Z", "ready": false,
            "tunnels": [{"server": "proxy:8091", "address": "10.0.0.1:8091", "ready": false,
                "since": "2026-05-01T11:59:00Z", "message": "cannot connect to 10.0.0.1:8091: refused"}],
            "refusedClusters": [{"cluster": "ke-x", "server": "proxy:8091", "reason": "Conflict", "message": "taken"}],
            "virtualClusters": [{"name": "ke-beijing", "ready": true, "nodeSelector": "location=beijing", "nodes": 2,
                "nodeNames": ["beijing-1", "beijing-2"], "namespaces": 5,
                "shares": {"requests": {"used": 3, "limit": 1000}, "watches": {"used": 12, "limit": 5000},
                    "sessions": {"used": 0, "limit": 128}, "seats": {"used": 10, "limit": 30},
                    "bodyBytes": {"used": 1, "limit": 16_777_216}, "namespaces": {"used": 5, "limit": 5000},
                    "storedBytes": {"used": 7_000_000, "limit": 1_073_741_824},
                    "writtenBytes": {"used": 9_000_000, "limit": 536_870_912}},
                "lastErrors": [{"time": "2026-05-01T11:59:00Z", "count": 4, "code": 429, "fault": "client",
                    "reason": "TooManyRequests", "message": "too many watches"}]}],
            "physicalClusters": [],
            "host": {"ready": true, "namespacesSynced": false, "inFlight": 4,
                "servers": [{"address": "https://10.2.0.1:6443", "ready": true, "connections": 2, "streams": 4}]},
            "certificates": [],
        }));
        let text = status.unwrap().text(true);
        for line in [
            "proxy-agent 0.1.0 as site-a: 0 of 1 tunnels up, 1 of 1 virtual clusters ready",
            "proxy:8091   no   60s   10.0.0.1:8091   -         -          cannot connect to 10.0.0.1:8091: refused",
            "ke-x              proxy:8091   Conflict   taken",
            "ke-beijing        yes     2       5            0         0     location=beijing   beijing-1,beijing-2",
            "ke-beijing   3/1000     12/5000   0/128      10/30   1/16         0/0         0/0          0/0         0/0         5/5000       7/1024       9/512",
            "ke-beijing       60s   4       429    client   TooManyRequests   too many watches",
            "https://10.2.0.1:6443   yes       2             4",
            "The namespaces of the host are not known yet; no virtual cluster is served before.",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_document_that_is_not_a_status_is_reported() {
        let refused = |document: Value| Status::read(&document).err().unwrap().to_string();
        assert!(refused(json!({"apiVersion": "atoll.dev/v9", "kind": "ServerStatus"})).contains("v9"));
        assert!(refused(json!({"apiVersion": "atoll.dev/v1alpha1", "kind": "Pod"})).contains("Pod"));
    }

    #[test]
    fn a_missing_server_and_a_wrong_url_have_different_errors() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let error = |admin: &str| {
            let args = Args { admin: admin.parse().unwrap(), output: Format::Table };
            run(&args, &mut Vec::new()).unwrap_err()
        };
        let missing = error(&format!("http://127.0.0.1:{port}"));
        assert!(missing.is::<Unreachable>() && missing.to_string().contains("8094"), "{missing:#}");
        assert!(!error("https://127.0.0.1:1").is::<Unreachable>());
    }
}
