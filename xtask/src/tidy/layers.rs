//! Which of our crates may depend on which, and what the lower ones must never use.

use std::path::Path;

use super::graph::{Graph, Use, arrows};
use super::lexer::in_name;
use super::source::Source;
use crate::finding::Finding;
use crate::tree::Tree;

/// Our crates, and those that each may depend on. A crate is below all crates that name it, so arrows only point down.
const ARROWS: &[(&str, &[&str])] = &[
    ("kube-wire", &[]),
    ("protocol", &[]),
    ("ops", &[]),
    ("oidc", &["ops"]),
    ("tunnel", &["protocol"]),
    ("dial", &["ops", "protocol", "tunnel"]),
    ("kubeconfig", &["ops"]),
    ("request-metrics", &["kube-wire", "ops", "protocol"]),
    ("request-traces", &["kube-wire", "ops", "protocol"]),
    ("audit", &["kube-wire", "kubeconfig", "ops", "protocol"]),
    ("rewrite", &["kube-wire"]),
    ("hub", &["kube-wire"]),
    ("dev-apiserver", &["kube-wire", "ops"]),
    ("host-client", &["kube-wire", "kubeconfig", "ops", "tunnel"]),
    ("caller", &["host-client", "kube-wire", "ops", "protocol", "rewrite"]),
    ("virtual-cluster", &["caller", "host-client", "kube-wire", "ops", "protocol", "rewrite", "tunnel"]),
    ("agent-config", &["host-client", "ops", "protocol", "request-traces", "rewrite", "tunnel", "virtual-cluster"]),
    ("feeds", &["host-client", "hub", "kube-wire", "ops", "rewrite", "virtual-cluster"]),
    // Never `rewrite`: the agent rewrites bodies, and the proxy-server does not parse them.
    (
        "proxy-server",
        &[
            "audit",
            "dial",
            "kube-wire",
            "kubeconfig",
            "oidc",
            "ops",
            "protocol",
            "request-metrics",
            "request-traces",
            "tunnel",
        ],
    ),
    (
        "proxy-agent",
        &[
            "agent-config",
            "caller",
            "dial",
            "feeds",
            "host-client",
            "kube-wire",
            "kubeconfig",
            "ops",
            "protocol",
            "request-metrics",
            "request-traces",
            "rewrite",
            "tunnel",
            "virtual-cluster",
        ],
    ),
    (
        "atoll",
        &[
            "dev-apiserver",
            "dial",
            "host-client",
            "kube-wire",
            "kubeconfig",
            "oidc",
            "ops",
            "protocol",
            "proxy-agent",
            "proxy-server",
            "rewrite",
            "tunnel",
            "virtual-cluster",
        ],
    ),
    // For tests alone.
    ("test-host", &["dev-apiserver", "host-client", "ops"]),
    // It makes networks for tests and measurements.
    ("link-emulator", &[]),
    // It uses what operators see: files, processes, ports.
    ("atoll-tests", &["link-emulator"]),
    // It measures the binaries from outside, and the engine from inside. It simulates agents, which dial.
    ("bench", &["dial", "kube-wire", "link-emulator", "ops", "protocol", "rewrite", "tunnel"]),
    ("xtask", &[]),
];

/// What tests may also name.
const TEST_ARROWS: &[(&str, &[&str])] =
    &[("proxy-agent", &["dev-apiserver", "test-host"]), ("proxy-server", &["dev-apiserver"])];

/// Crates without I/O and clock, so that every byte and every state can be tested.
const SANS_IO: &[&str] = &["hub", "kube-wire", "protocol", "rewrite"];

/// What a sans-I/O crate must not depend on, even indirectly.
const IO_CRATES: &[&str] = &[
    "chrono",
    "h2",
    "hyper",
    "hyper-util",
    "jiff",
    "mio",
    "rustls",
    "socket2",
    "time",
    "tokio",
    "tokio-util",
    "tracing-subscriber",
];

/// The parts of the standard library that it must not name. Addresses are data; sockets are not.
const IO_PATHS: &[&str] = &[
    "std::env",
    "std::fs",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "SystemTime",
    "TcpListener",
    "TcpStream",
    "ToSocketAddrs",
    "UdpSocket",
];

/// The only module that may name the metrics library, and the prefix of its path.
const METRICS: &str = "ops/src/metrics";

pub(crate) fn check(graph: &Graph, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ours = graph.member_names();
    for (index, member) in graph.members() {
        let name = member.name.as_str();
        let at = |dependency: &str, problem: String, remedy: &str| {
            let line = tree.line_of_dependency(&member.manifest, dependency);
            Finding::new(&member.manifest, line, problem, remedy)
        };
        let Some(allowed) = row(ARROWS, name) else {
            let problem = format!("nothing says what `{name}` may depend on");
            let remedy = "give it a line in ARROWS of xtask/src/tidy/layers.rs";
            findings.push(at("name", problem, remedy));
            continue;
        };
        let in_tests = row(TEST_ARROWS, name).unwrap_or_default();
        for (to, uses) in graph.direct(index) {
            let to = to.name.as_str();
            let only_in_tests = uses.iter().all(|&u| u == Use::Dev);
            let is_allowed = allowed.contains(&to) || only_in_tests && in_tests.contains(&to);
            if ours.contains(&to) && !is_allowed {
                let problem = format!("`{name}` must not depend on `{to}`");
                let remedy = "arrows point down only: move what both need below them";
                findings.push(at(to, problem, remedy));
            }
            if to == "prometheus" && name != "ops" {
                let problem = format!("`{name}` depends on prometheus");
                findings.push(at(to, problem, "use the types of ops::metrics"));
            }
        }
        let is_io = |name: &str| IO_CRATES.contains(&name);
        if SANS_IO.contains(&name)
            && let Some(chain) = graph.chain(index, |package| is_io(&package.name))
        {
            let problem = format!("a sans-I/O crate does I/O: {}", arrows(&chain));
            let remedy = "leave it or its feature out; I/O belongs to tunnel, ops and the binaries";
            findings.push(at(&chain[1].name, problem, remedy));
        }
    }
    findings
}

pub(crate) fn check_source(source: &Source<'_>) -> Vec<Finding> {
    let is_sans_io = SANS_IO.iter().any(|name| source.path.starts_with(Path::new(name).join("src")));
    let is_metrics =
        source.path.to_string_lossy().strip_prefix(METRICS).is_some_and(|rest| rest.starts_with(['.', '/']));
    let mut findings = Vec::new();
    for (index, code) in source.views.code.lines().enumerate() {
        let line = index + 1;
        if is_sans_io
            && !source.is_test(line)
            && let Some(path) = IO_PATHS.iter().find(|path| code.contains(**path))
        {
            findings.push(Finding::new(
                source.path,
                line,
                format!("`{path}` in a sans-I/O crate"),
                "take the value as an argument",
            ));
        }
        if !is_metrics && names_crate(code, "prometheus") {
            findings.push(Finding::new(
                source.path,
                line,
                "`prometheus` outside ops::metrics",
                "use the types of ops::metrics",
            ));
        }
    }
    findings
}

fn row(table: &[(&str, &'static [&'static str])], name: &str) -> Option<&'static [&'static str]> {
    table.iter().find(|(from, _)| *from == name).map(|(_, to)| *to)
}

/// Whether a line contains a path that begins with the crate.
fn names_crate(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], code[at + name.len()..].trim_start());
        let is_imported = before.ends_with("use ") || before.ends_with("extern crate ");
        let is_whole = !before.ends_with(|char| in_name(char) || char == '.');
        is_whole && (is_imported || after.starts_with("::"))
    })
}

#[cfg(test)]
mod tests;
