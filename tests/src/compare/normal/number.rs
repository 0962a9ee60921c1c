//! Numbers that a cluster assigns.

use super::run;

/// Replaces each resource version by `VERSION`: in YAML, JSON, JSON in JSON, URLs and messages.
pub(super) fn resource_versions(text: &str) -> String {
    run::replace(
        text,
        |char| char.is_ascii_digit(),
        |before, _, _| {
            let words: Vec<_> = before.split(|char: char| !char.is_ascii_alphanumeric()).collect();
            let mut words = words.iter().rev().filter(|word| !word.is_empty()).map(|word| word.to_ascii_lowercase());
            let last = words.next()?;
            let found = last.ends_with("resourceversion")
                || (last == "version" && words.next()? == "resource")
                // Too large resource version: 9, current: 8
                || (last == "current" && before.contains("resource version"));
            found.then(|| "VERSION".to_owned())
        },
    )
}

/// Replaces each IPv4 address by `ADDRESS` or `LOOPBACK`, and each port of loopback by `PORT`.
pub(super) fn addresses(text: &str) -> String {
    let text = run::replace(
        text,
        |char| char.is_ascii_digit() || char == '.',
        |_, run, _| {
            // A full stop can follow the address.
            let address = run.trim_end_matches('.');
            let parsed = address.parse::<std::net::Ipv4Addr>().ok()?;
            let name = if parsed.is_loopback() { "LOOPBACK" } else { "ADDRESS" };
            Some(format!("{name}{}", &run[address.len()..]))
        },
    );
    run::replace(
        &text,
        |char| char.is_ascii_digit(),
        |before, _, _| before.ends_with("LOOPBACK:").then(|| "PORT".to_owned()),
    )
}

/// Replaces each number in the default range of node ports (30000 to 32767) by `NODE-PORT`.
pub(super) fn node_ports(text: &str) -> String {
    run::replace(
        text,
        |char| char.is_ascii_alphanumeric(),
        |_, run, _| {
            let port = run.parse::<u16>().ok().filter(|_| run.len() == 5)?;
            (30_000..=32_767).contains(&port).then(|| "NODE-PORT".to_owned())
        },
    )
}
