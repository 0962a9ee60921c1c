//! What we may be built from: deny.toml, checked without cargo-deny.
//!
//! Bans, duplicate versions, licences and sources are decided here, so that they are decided on every machine; the file
//! is cargo-deny's own, and `cargo deny check` reads it too. A key that is not understood is an error, since it would be
//! a rule that nobody checks. What is *not* here: `[advisories]`, and the texts of licences as opposed to what crates
//! declare.

mod policy;
mod spdx;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::finding::Finding;
use super::graph::{Graph, Reached, arrows};
use super::tree::Tree;
pub(crate) use policy::Policy;
use spdx::Expression;

pub(crate) const FILE: &str = "deny.toml";

/// Checks all that the workspace is built and tested with.
pub(crate) fn check(policy: &Policy, graph: &Graph, tree: &Tree) -> Vec<Finding> {
    let reached = graph.reached();
    let mut findings = Vec::new();
    findings.extend(check_bans(policy, &reached, tree));
    findings.extend(check_duplicates(policy, &reached));
    findings.extend(check_skips(policy, &reached));
    findings.extend(check_licenses(policy, &reached, tree));
    findings.extend(check_sources(policy, &reached, tree));
    findings.extend(check_requirements(graph, tree));
    findings
}

fn check_bans(policy: &Policy, reached: &[Reached<'_>], tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in reached {
        let bans = &policy.bans().deny;
        for ban in bans.iter().filter(|ban| ban.spec.matches(one.package)) {
            let problem = format!("a banned crate: {} ({})", arrows(&one.chain), ban.reason);
            findings.push(Finding::new(
                &one.chain[0].manifest,
                way_in(one, tree),
                problem,
                "turn off the feature that asks for it, or do without",
            ));
        }
    }
    findings
}

fn check_duplicates(policy: &Policy, reached: &[Reached<'_>]) -> Vec<Finding> {
    let skips = &policy.bans().skip;
    let mut versions: BTreeMap<&str, Vec<&Reached<'_>>> = BTreeMap::new();
    for one in reached {
        if !skips.iter().any(|s| s.get_ref().spec.matches(one.package)) {
            versions.entry(&one.package.name).or_default().push(one);
        }
    }
    let mut findings = Vec::new();
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let way = |one: &&Reached<'_>| format!("{} by {}", one.package.version, arrows(&one.chain));
        let ways = versions.iter().map(way).collect::<Vec<_>>().join(", ");
        findings.push(Finding::new(
            Path::new(FILE),
            policy.skip_line(),
            format!("`{name}` is built in several versions: {ways}"),
            "agree on one, or add the odd one to `skip` and say why",
        ));
    }
    findings
}

fn check_skips(policy: &Policy, reached: &[Reached<'_>]) -> Vec<Finding> {
    let skips = policy.bans().skip.iter();
    let is_there = |spec: &policy::Spec| reached.iter().any(|one| spec.matches(one.package));
    skips
        .filter(|skip| !is_there(&skip.get_ref().spec))
        .map(|skip| {
            let problem = format!("`{}` is skipped and not there", skip.get_ref().spec);
            Finding::new(Path::new(FILE), policy.line(skip), problem, "remove it")
        })
        .collect()
}

fn check_licenses(policy: &Policy, reached: &[Reached<'_>], tree: &Tree) -> Vec<Finding> {
    let allowed = &policy.licenses().allow;
    let is_allowed = |name: &str| allowed.iter().any(|allowed| allowed.get_ref() == name);
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for one in reached {
        let problem = match one.package.license.as_deref().map(Expression::parse) {
            None => "declares no licence".to_owned(),
            Some(Err(err)) => format!("declares a licence that cannot be read: {err}"),
            Some(Ok(license)) => {
                seen.extend(license.names().into_iter().map(str::to_owned));
                if license.is_met(&is_allowed) {
                    continue;
                }
                format!("is under {license}, which is not allowed")
            }
        };
        findings.push(Finding::new(
            &one.chain[0].manifest,
            way_in(one, tree),
            format!("`{}` {problem}", arrows(&one.chain)),
            "do without it, or have the licence judged and added to deny.toml",
        ));
    }
    for unused in allowed.iter().filter(|name| !seen.contains(name.get_ref())) {
        let problem = format!("nothing is under {}", unused.get_ref());
        findings.push(Finding::new(Path::new(FILE), policy.line(unused), problem, "remove it"));
    }
    findings
}

fn check_sources(policy: &Policy, reached: &[Reached<'_>], tree: &Tree) -> Vec<Finding> {
    let registries = &policy.sources().allow_registry;
    let is_known = |source: &str| {
        let registry = source.strip_prefix("registry+");
        registry.is_some_and(|url| registries.iter().any(|known| known == url))
    };
    let mut findings = Vec::new();
    for one in reached {
        // Our own crates have no source.
        if let Some(source) = one.package.source.as_deref().filter(|s| !is_known(s)) {
            findings.push(Finding::new(
                &one.chain[0].manifest,
                way_in(one, tree),
                format!("`{}` comes from {source}", arrows(&one.chain)),
                "take a release from the registry",
            ));
        }
    }
    findings
}

fn check_requirements(graph: &Graph, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, member) in graph.members() {
        for (name, _) in member.requirements.iter().filter(|(_, req)| req == "*") {
            findings.push(Finding::new(
                &member.manifest,
                tree.line_of_dependency(&member.manifest, name),
                format!("any version of `{name}` will do"),
                "ask for the oldest one that works",
            ));
        }
    }
    findings
}

/// The line of our manifest that let it in.
fn way_in(one: &Reached<'_>, tree: &Tree) -> usize {
    let first_step = one.chain.get(1).unwrap_or(&one.chain[0]);
    tree.line_of_dependency(&one.chain[0].manifest, &first_step.name)
}

#[cfg(test)]
mod tests;
