//! Numbers that a cluster hands out.

use super::run;

/// Puts `VERSION` in the place of each resource version: in YAML, JSON, JSON in JSON, URLs, and in messages.
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

/// Puts `ADDRESS` in the place of each IPv4 address, and drops a port of loopback.
pub(super) fn addresses(text: &str) -> String {
    let text = run::replace(
        text,
        |char| char.is_ascii_digit() || char == '.',
        |_, run, _| {
            // A full stop may follow.
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

/// Puts `NODE-PORT` in the place of each number of the default range, 30000 to 32767.
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
