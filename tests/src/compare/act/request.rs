//! One HTTP request through `kubectl proxy`, to see parts of a response that kubectl does not show.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::Path;

use anyhow::Context;

use super::forward::announced_port;
use super::outcome::{CONDITION_TIMEOUT, Outcome};
use super::running::Running;
use crate::compare::side::Side;

/// Response headers that affect clients.
const COMPARED_HEADERS: [&str; 4] = ["content-type", "warning", "retry-after", "allow"];

/// A running `kubectl proxy`.
#[derive(Debug)]
pub(super) struct Proxy {
    port: u16,
    _running: Running,
}

// === impl Proxy ===

impl Proxy {
    pub(super) fn start(side: &Side, folder: &Path) -> anyhow::Result<Self> {
        let words = ["proxy", "--port=0"].map(str::to_owned);
        let mut running = Running::start(&mut side.kubectl(&words, folder))?;
        let port = announced_port(&mut running, "Starting to serve on 127.0.0.1:")?;
        Ok(Self { port, _running: running })
    }

    /// Sends a request. The output contains the HTTP status. The exit code is 0.
    pub(super) fn request(&self, method: &str, path: &str, headers: &[String], body: &str) -> anyhow::Result<Outcome> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_read_timeout(Some(CONDITION_TIMEOUT))?;
        // HTTP/1.0: the body ends with the connection, without chunks.
        let mut head = format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
        for header in headers {
            write!(head, "{header}\r\n")?;
        }
        // In one piece: if the API server responds before it has read the body, `kubectl proxy` closes the connection. A body
        // that arrives after that resets it, and the response is lost.
        write!(head, "\r\n{body}")?;
        socket.write_all(head.as_bytes())?;
        let mut response = Vec::new();
        socket.read_to_end(&mut response)?;
        comparable(&String::from_utf8_lossy(&response)).map(Outcome::ended)
    }
}

/// The status, the compared headers and the body.
fn comparable(response: &str) -> anyhow::Result<String> {
    let (head, body) = response.split_once("\r\n\r\n").context("the head of the response does not end")?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split_once(' ')).context("the response has no status")?.1;
    let mut text = format!("{status}\n");
    let mut headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, _)| COMPARED_HEADERS.contains(&name.as_str()))
        .collect();
    headers.sort_unstable();
    for (name, value) in headers {
        writeln!(text, "{name}: {value}")?;
    }
    text.push_str(body);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::comparable;

    #[test]
    fn the_status_some_headers_and_the_body_are_compared() {
        let response =
            "HTTP/1.0 404 Not Found\r\nWarning: 299 - \"old\"\r\nDate: today\r\nContent-Type: a/b\r\n\r\n{}\r\n\r\n";
        assert_eq!(
            comparable(response).unwrap(),
            "404 Not Found\ncontent-type: a/b\nwarning: 299 - \"old\"\n{}\r\n\r\n"
        );
        assert!(comparable("HTTP/1.0 200 OK\r\n").is_err());
    }
}
