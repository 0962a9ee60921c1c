//! `atoll check`: whether a configuration will do, said before anything is started with it.
//!
//! A file is read by the code that the binaries read it with, so what is refused here is refused there. Then come the
//! files that it names: [`certificate`] says what is wrong with one, [`server`] and [`agent`] which there are and what
//! they have to do with each other. If it is asked for, [`host`] asks the host cluster.

mod agent;
mod certificate;
mod host;
mod report;
mod server;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use ops::config::{Document, kinds};
use proxy_agent::ProxyAgentConfiguration;
use proxy_server::ProxyServerConfiguration;

use report::Report;

/// Check a configuration, and the files that it names.
///
/// Reads a file with a ProxyServerConfiguration, a ProxyAgentConfiguration or both, as the binaries do, and says
/// everything that is wrong with it, each with its line. The certificates, keys and kubeconfigs that it names are read
/// too: whether a key goes with its certificate, whether an authority is one, what has expired or soon will, and
/// whether each virtual cluster has a client CA of its own.
///
/// Ends with 0 if there is no mistake (warnings may be), with 1 if there is one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll check /etc/atoll/proxy-server.yaml\n  \
    atoll check --host proxy-agent.yaml && systemctl restart proxy-agent")]
pub(crate) struct Args {
    /// The configuration. Documents of other kinds in it are passed over, as the binaries do.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Ask the host cluster of a proxy-agent too, with the agent's credential: whether it answers, whether its version
    /// will do, whether the agent has all rights of configs/kubernetes/agent-rbac.yaml; and warn of virtual clusters
    /// without nodes or with the same ones, and of bindings that give something to everybody. Nothing is written.
    #[arg(long)]
    host: bool,
}

/// Checks the file and says what was found.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut report = Report::default();
    match kinds(&args.file) {
        Err(errors) => report.take(&errors),
        Ok(kinds) => {
            let holds = |kind: &str| kinds.iter().any(|found| **found == kind);
            let (server, agent) = (ProxyServerConfiguration::KIND, ProxyAgentConfiguration::KIND);
            if holds(server) {
                report.examine(&args.file, server::check);
            }
            if holds(agent) {
                report.examine(&args.file, |config, report| {
                    agent::check(config, report);
                    if args.host {
                        host::ask(config, report);
                    }
                });
            } else if args.host {
                report.mistakes.general(format_args!("--host is for a {agent}, and the file holds none"));
            }
            if !holds(server) && !holds(agent) {
                let others: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
                let only = if others.is_empty() { "" } else { ", only " };
                let others = others.join(", ");
                report.mistakes.general(format_args!("the file holds no {server} and no {agent}{only}{others}"));
            }
        }
    }
    let good = report.write(&args.file, out)?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests;
