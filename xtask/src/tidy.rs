//! The rules of this repository that are neither rustc's nor clippy's.
//!
//! Every rule is a function from what was read to [`Finding`]s; none touches the file system or runs a program, so that
//! each is tested with a few lines of text. What is *not* here: known vulnerabilities. They need a database that
//! changes by the day, and `cargo deny check advisories` has it.
//!
//! Reading order: [`finding`]; [`tree`], [`lexis`] and [`source`] (files, and what of them is code, comment or test),
//! [`words`], [`shape`], [`clock`], [`frame`], [`refusals`] (rules on text); [`graph`] (what depends on what), [`layers`],
//! [`deny`] (rules on crates).

mod clock;
mod deny;
mod finding;
mod frame;
mod graph;
mod layers;
mod lexis;
mod refusals;
mod shape;
mod source;
mod tree;
mod words;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use deny::Policy;
use finding::Finding;
use graph::Graph;
use source::Source;
use tree::Tree;

/// Checks the workspace that this program was built in, prints what it finds, and fails if that is anything.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let findings = check(root)?;
    report(&findings);
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let tree = Tree::read(root)?;
    let policy = tree.text(Path::new(deny::FILE));
    let policy = Policy::parse(policy.context("deny.toml is missing")?)?;
    let graph = Graph::load(root, policy.targets())?;

    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("rs") {
        let source = Source::new(path, text);
        findings.extend(words::check(&source));
        findings.extend(shape::check(&source));
        findings.extend(clock::check(&source));
        findings.extend(layers::check_source(&source));
    }
    findings.extend(frame::check(&tree, &graph.member_names()));
    findings.extend(refusals::check(&tree));
    findings.extend(layers::check(&graph, &tree));
    findings.extend(deny::check(&policy, &graph, &tree));
    findings.sort();
    Ok(findings)
}

#[expect(clippy::print_stdout, reason = "a task talks to the person who runs it")]
fn report(findings: &[Finding]) {
    for finding in findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => println!("tidy: nothing to report"),
        n => println!("tidy: {n} findings"),
    }
}
