//! The rules of this repository that neither rustc nor clippy checks.
//!
//! Every rule is a function from the files to [`Finding`]s. No rule uses the file system or runs a program, so a few
//! lines of text can test it. What is *not* here: licences, sources and bans of dependencies, which cargo-deny checks.
//!
//! Reading order: [`lexer`] and [`source`] (what of a file is code, comment or test), [`words`], [`shape`], [`clock`],
//! [`frame`], [`links`], [`contents`], [`copies`], [`walkthrough`], [`mapped_modules`], [`refusals`] (rules on text);
//! [`graph`] (what depends on what), [`layers`] (a rule on crates); [`modules`] (which module names which), [`cycles`], [`methods`],
//! [`shares`] (rules on structure), [`known`] (what of them the code is known to violate), [`structure`] (all of that
//! together).

mod clock;
mod contents;
mod copies;
mod cycles;
mod frame;
mod graph;
mod known;
mod layers;
mod lexer;
mod links;
mod mapped_modules;
mod methods;
mod modules;
mod refusals;
mod shape;
mod shares;
mod source;
mod structure;
mod walkthrough;
mod words;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use crate::finding::{Finding, report};
use crate::reference;
use crate::tree::Tree;
use graph::Graph;
use source::Source;

/// The platforms that we ship for, as rustc names them.
const TARGETS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

#[derive(Args)]
pub(crate) struct Options {
    /// Do not check, but shorten the list of known violations (xtask/known-violations.txt) to those that still exist.
    /// Run it after a clean-up. It changes nothing if an entry would be new or larger.
    #[arg(long)]
    write_known: bool,
    /// Let --write-known also add and raise entries, for example for code that moved to another crate.
    #[arg(long, requires = "write_known")]
    allow_growth: bool,
}

/// Checks the workspace with this root, prints all findings, and fails if there are any.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<ExitCode> {
    let tree = Tree::read(root)?;
    let graph = Graph::load(root, TARGETS)?;
    let (findings, summary) = if options.write_known {
        write_known(root, &tree, &graph, options.allow_growth)?
    } else {
        let findings = check(&tree, &graph);
        let summary = match findings.len() {
            0 => "nothing to report".to_owned(),
            n => format!("{n} findings"),
        };
        (findings, summary)
    };
    Ok(report("tidy", &findings, &summary))
}

/// Writes the list of known violations, unless this would add to it. Then it returns what it would add.
fn write_known(root: &Path, tree: &Tree, graph: &Graph, allow_growth: bool) -> anyhow::Result<(Vec<Finding>, String)> {
    let (structure, known) = match structure::read(graph, tree) {
        Ok(read) => read,
        Err(findings) => return Ok((findings, format!("{} is unchanged", known::FILE))),
    };
    let growth = structure.growth(&known);
    if !growth.is_empty() && !allow_growth {
        let summary = format!("{} is unchanged: {} violations would be new or larger", known::FILE, growth.len());
        return Ok((growth, summary));
    }
    let path = root.join(known::FILE);
    let violations = structure.violations();
    fs::write(&path, known.updated(&violations)).with_context(|| format!("cannot write {}", path.display()))?;
    Ok((Vec::new(), format!("{} has {} violations", known::FILE, violations.len())))
}

fn check(tree: &Tree, graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("rs") {
        let source = Source::new(path, text);
        findings.extend(words::check(&source));
        findings.extend(shape::check(&source));
        findings.extend(clock::check(&source));
        findings.extend(layers::check_source(&source));
    }
    findings.extend(frame::check(tree, &graph.member_names()));
    findings.extend(links::check(tree));
    findings.extend(contents::check(tree));
    findings.extend(reference::check(tree));
    findings.extend(walkthrough::check(tree));
    findings.extend(mapped_modules::check(tree, &graph.member_names()));
    findings.extend(refusals::check(tree));
    findings.extend(copies::check(tree));
    findings.extend(layers::check(graph, tree));
    findings.extend(structure::check(graph, tree));
    findings.sort();
    findings
}
