//! One request to a forwarded port.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;

use anyhow::Context;

use super::outcome::{CONDITION_TIMEOUT, Outcome};
use super::running::Running;

/// Sends a line to the port. The outcome is the line that it returns.
pub(super) fn forward(command: &mut Command, send: &str) -> anyhow::Result<Outcome> {
    let mut running = Running::start(command)?;
    let port = announced_port(&mut running, "Forwarding from 127.0.0.1:")?;
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_read_timeout(Some(CONDITION_TIMEOUT))?;
    writeln!(socket, "{send}")?;
    let mut response = String::new();
    BufReader::new(socket).read_line(&mut response).context("the port returned nothing")?;
    Ok(Outcome::ended(response))
}

/// Waits until kubectl prints the port after the text `before`.
pub(super) fn announced_port(running: &mut Running, before: &str) -> anyhow::Result<u16> {
    let at = running.until(before, 0)?;
    running.until("\n", at)?;
    let output = running.output();
    let digits: String = output.chars().skip(at).take_while(char::is_ascii_digit).collect();
    digits.parse().with_context(|| format!("{output:?} contains no port"))
}
