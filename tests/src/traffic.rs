//! The bytes of TCP connections, as the kernel counts them.

use std::process::Command;

use anyhow::{Context, ensure};

/// The bytes that the connections from this machine to this port have carried, in both directions and with TLS. Connections that have
/// ended do not count.
pub fn bytes_of_connections_to(port: u16) -> anyhow::Result<u64> {
    let output =
        Command::new("ss").args(["-tinHO", "dport", "=", &format!(":{port}")]).output().context("cannot run ss")?;
    ensure!(output.status.success(), "ss: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let counts = text
        .split_ascii_whitespace()
        .filter_map(|word| word.strip_prefix("bytes_sent:").or_else(|| word.strip_prefix("bytes_received:")));
    counts.map(|count| count.parse::<u64>().with_context(|| count.to_owned())).sum()
}
