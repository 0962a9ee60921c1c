//! One HTTP request, by way of `kubectl proxy`: what kubectl does not show of an answer.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use anyhow::Context;

use super::forward::announced_port;
use super::outcome::{CONDITION_TIMEOUT, Outcome};
use super::running::Running;
use crate::compare::side::Side;

/// Headers of an answer that clients act on.
const SHOWN: [&str; 4] = ["content-type", "warning", "retry-after", "allow"];

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

    /// Sends it. The HTTP status is in the output; the exit code is 0.
    pub(super) fn request(&self, method: &str, path: &str, headers: &[String], body: &str) -> anyhow::Result<Outcome> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_read_timeout(Some(CONDITION_TIMEOUT))?;
        // HTTP/1.0: the body ends with the connection, without chunks.
        let mut head = format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
        for header in headers {
            write!(head, "{header}\r\n")?;
        }
        write!(socket, "{head}\r\n{body}")?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer)?;
        shown(&String::from_utf8_lossy(&answer)).map(Outcome::ended)
    }
}

/// The status, the headers that matter, the body.
fn shown(answer: &str) -> anyhow::Result<String> {
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of its head")?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split_once(' ')).context("no status")?.1;
    let mut text = format!("{status}\n");
    let mut headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, _)| SHOWN.contains(&name.as_str()))
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
    use super::shown;

    #[test]
    fn shows_what_clients_act_on() {
        let answer =
            "HTTP/1.0 404 Not Found\r\nWarning: 299 - \"old\"\r\nDate: today\r\nContent-Type: a/b\r\n\r\n{}\r\n\r\n";
        assert_eq!(shown(answer).unwrap(), "404 Not Found\ncontent-type: a/b\nwarning: 299 - \"old\"\n{}\r\n\r\n");
        assert!(shown("HTTP/1.0 200 OK\r\n").is_err());
    }
}
