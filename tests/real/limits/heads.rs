//! Headers that are long when they are encoded. A connection that others share must not end because of them.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Kubectl, Route, eventually, kubectl, paths};

use super::site;

/// Sends a request without credentials, with 140 KB of a byte that HTTP/2 encodes with 28 bits (RFC 7541 appendix B), and prints the
/// status. curl cannot send it. Arguments: port, path.
const CLIENT: &str = r"
import socket, ssl, sys
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
with context.wrap_socket(socket.create_connection(('127.0.0.1', int(sys.argv[1])))) as connection:
    connection.settimeout(30)
    head = b'GET ' + sys.argv[2].encode() + b' HTTP/1.1\r\nhost: 127.0.0.1\r\n'
    for name in (b'x-one', b'x-two'):
        head += name + b': ' + b'\xf9' * 70000 + b'\r\n'
    connection.sendall(head + b'\r\n')
    print(connection.recv(12).decode().split()[1])
";

/// A pod whose responses have a header of this many bytes. Arguments: port, bytes.
const POD: &str = "
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('x-long', 'x' * int(sys.argv[2]))
        self.send_header('content-length', '0')
        self.end_headers()
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
";

/// The port of the pod in its own network.
const PORT: u16 = 8080;

/// h2 accepts seven frames for the headers of a response, and Go sends frames of 16 KiB.
const TOO_LONG: &str = "200000";

/// A client without credentials sends long headers, and so does a pod. A watch of another virtual cluster continues.
pub(super) fn break_no_connection(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let (site, attacker, other) = site(host, "heads", "")?;
    let neighbour = site.administrator(&other, Route::Path)?;
    let mut watch = watch(&neighbour)?;

    let (port, path) = (site.site().ports.endpoint.to_string(), format!("/clusters/{attacker}/version"));
    for _ in 0..3 {
        let output = Command::new("python3").args(["-c", CLIENT, &port, &path]).output()?;
        ensure!(output.stdout == b"200\n", "{output:?}");
    }
    ensure!(watch.try_wait()?.is_none(), "long headers of a request have ended the watch of another cluster");

    let administrator = site.administrator(&attacker, Route::Path)?;
    let address = run_pod(&administrator)?;
    let port = paths::free_port();
    let targets = site.host().dir().join("pod-targets");
    let before = std::fs::read_to_string(&targets)?;
    std::fs::write(&targets, format!("{before}{address}:{PORT} 127.0.0.1:{port}\n"))?;
    let log = site.site().file("pod.log");
    let _pod = Process::start("pod", Path::new("python3"), &["-c", POD, &port.to_string(), TOO_LONG], log)?;
    let curl = site.curl(&attacker, Route::Path)?;
    let path = format!("/api/v1/namespaces/default/pods/long:{PORT}/proxy/");
    eventually(kubectl::CONDITION_TIMEOUT, || {
        let response = curl.get(&path)?;
        ensure!(response.code == 500, "{}: {}", response.code, response.body);
        Ok(())
    })?;
    for _ in 0..5 {
        ensure!(curl.get(&path)?.code == 500);
        neighbour.ok(&["get", "configmaps", "-n", "default"])?;
    }
    ensure!(watch.try_wait()?.is_none(), "long headers of a pod have ended the watch of another cluster");
    kubectl::end(watch).map(drop)
}

/// A watch that has begun.
fn watch(kubectl: &Kubectl) -> anyhow::Result<Child> {
    kubectl.ok(&["get", "configmaps", "-n", "default"])?;
    kubectl.start(&["get", "configmaps", "-n", "default", "--watch"])
}

/// Creates a pod. Returns its address.
fn run_pod(kubectl: &Kubectl) -> anyhow::Result<String> {
    kubectl.ok(&["run", "long", "-n", "default", "--image=nginx"])?;
    kubectl.ok(&["wait", "--for=condition=Ready", "-n", "default", "pod/long", "--timeout=50s"])?;
    let address = kubectl.ok(&["get", "pod", "long", "-n", "default", "-o", "jsonpath={.status.podIP}"])?;
    Some(address).filter(|address| !address.is_empty()).context("the pod has no address")
}
