//! docs/twelve-sites.md: from a host and a Karmada without members to twelve members, with the commands of the page.

use std::path::Path;
use std::sync::PoisonError;

use anyhow::{Context, ensure};
use atoll_tests::page::{Step, steps};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, paths};
use libtest_mimic::Trial;
use tokio::time::Instant;

use crate::examples::PORTS;
use crate::pages::check;
use crate::trial::trial;

const PAGE: &str = "docs/twelve-sites.md";
/// The fewest commands that lead to twelve members.
const LEAST: usize = 20;
/// One node is not in use at the beginning.
const NODES: usize = 13;

/// The programs that the page starts, and what they print when they are ready.
const PROGRAMS: [(&str, &str); 2] = [("proxy-server", " ready "), ("proxy-agent", "tunnel established")];

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("walkthrough::twelve_sites", twelve_sites)]
}

#[expect(clippy::print_stdout, reason = "the page states the time")]
fn twelve_sites() -> anyhow::Result<()> {
    let text = std::fs::read_to_string(paths::workspace().join(PAGE)).context(PAGE)?;
    let steps = steps(&text);
    ensure!(steps.len() >= LEAST, "{PAGE} has {} commands", steps.len());

    let host = HostCluster::up_with_karmada()?;
    replace_nodes(&host)?;
    let folder = tempfile::Builder::new().prefix("atoll-page-").tempdir()?;
    for name in ["host.kubeconfig", "karmada.kubeconfig"] {
        std::fs::copy(host.dir().join(name), folder.path().join(name))?;
    }
    std::os::unix::fs::symlink(paths::workspace().join("configs"), folder.path().join("configs"))?;

    let _ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Dropped before the folder with their files.
    let mut programs = Vec::new();
    let begun = Instant::now();
    for step in &steps {
        let context = || format!("{PAGE}:{}\n{}", step.line, logs(&programs));
        match start(step, folder.path()).with_context(context)? {
            Some(program) => programs.push(program),
            None => check(step, folder.path()).with_context(context)?,
        }
    }
    println!("{PAGE}: {} commands in {} s", steps.len(), begun.elapsed().as_secs());
    for mut program in programs.into_iter().rev() {
        let status = program.interrupt()?;
        ensure!(status.success(), "{status}:\n{}", program.log());
    }
    Ok(())
}

/// Starts a program, if the step does, and waits until it is ready.
fn start(step: &Step, folder: &Path) -> anyhow::Result<Option<Process>> {
    let Some((name, ready)) = PROGRAMS.iter().find(|(name, _)| step.command.starts_with(&format!("{name} --config")))
    else {
        return Ok(None);
    };
    ensure!(step.command == format!("{name} --config {name}.yaml >{name}.log 2>&1 &"), "{}", step.command);
    let config = folder.join(name).with_extension("yaml");
    let log = folder.join(name).with_extension("log");
    let config = config.to_str().context("temporary directories have UTF-8 names")?;
    let mut program = Process::start(name, &paths::binary(name), &["--config", config], log)?;
    program.printed(ready)?;
    Ok(Some(program))
}

/// The last lines of each log.
fn logs(programs: &[Process]) -> String {
    let tail =
        |log: String| log.lines().rev().take(15).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
    programs.iter().map(|program| tail(program.log())).collect::<Vec<_>>().join("\n---\n")
}

/// Replaces the nodes of the host by those of the page.
fn replace_nodes(host: &HostCluster) -> anyhow::Result<()> {
    host.kubectl().ok(&["delete", "nodes", "--all"])?;
    let nodes: Vec<_> = (1..=NODES)
        .map(|number| {
            let site = (number < NODES).then(|| ("site", format!("{number:02}")));
            (format!("node-{number:02}"), site.into_iter().collect())
        })
        .collect();
    host.create_nodes(&nodes)
}
