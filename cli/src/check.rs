//! `atoll check`: whether a configuration will do, said before anything is started with it.
//!
//! A file is read by the code that the binaries read it with, so what is refused here is refused there. Then come the
//! files that it names: [`certificate`] says what is wrong with one, [`server`] and [`agent`] which there are and what
//! they have to do with each other. If it is asked for, [`host`] asks the host cluster; [`weakness`] has the kinds of what it
//! can find there.

mod agent;
mod certificate;
mod host;
mod report;
mod server;
mod weakness;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use ops::config::{Document, kinds};
use proxy_agent::ProxyAgentConfiguration;
use proxy_server::ProxyServerConfiguration;

use report::{Format, Report};
use weakness::Check;

/// Check a configuration, and the files that it names.
///
/// Reads a file with a ProxyServerConfiguration, a ProxyAgentConfiguration or both, as the binaries do, and says
/// everything that is wrong with it, each with its line. The certificates, keys and kubeconfigs that it names are read
/// too: whether a key goes with its certificate, whether an authority is one, what has expired or soon will, and
/// whether each virtual cluster has a client CA of its own.
///
/// With --host, the host cluster of a proxy-agent is asked too. That tells what keeps the agent from its work, and what on
/// the host weakens the isolation of virtual clusters, each with what to do about it.
///
/// Ends with 0 if there is neither a mistake nor a weakness (warnings may be), with 1 if there is one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll check /etc/atoll/proxy-server.yaml\n  \
    atoll check --host proxy-agent.yaml && systemctl restart proxy-agent\n  \
    atoll check --host --accept node-label --accept free-volume proxy-agent.yaml\n  \
    atoll check --host -o json proxy-agent.yaml | jq '.items[] | select(.severity == \"weakness\")'")]
pub(crate) struct Args {
    /// The configuration. Documents of other kinds in it are passed over, as the binaries do.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Ask the host cluster of a proxy-agent too, with the agent's credential: whether it answers, whether its version
    /// will do, whether the agent has all rights of configs/kubernetes/agent-rbac.yaml, which virtual clusters have no nodes,
    /// and what weakens their isolation (the kinds are listed at --accept). Nothing is written. Lists are read page by page;
    /// what takes longer than three seconds is told on standard error.
    #[arg(long)]
    host: bool,

    /// Ask the host with this kubeconfig instead of the agent's credential, where the agent's is out of reach, as with
    /// `inCluster: true`. Whoever it is needs to list everything and to create SubjectAccessReviews; the agent's own rights
    /// are not looked at then. Implies --host.
    #[arg(long, value_name = "KUBECONFIG")]
    host_kubeconfig: Option<PathBuf>,

    /// Leave out weaknesses of this kind, which you know and accept: they are only counted. Can be given several times.
    #[arg(long, value_name = "KIND", value_enum)]
    accept: Vec<Check>,

    /// How it is shown.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: Format,
}

/// Checks the file and says what was found.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut report = Report::default();
    let asks_host = args.host || args.host_kubeconfig.is_some();
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
                    if asks_host {
                        report.look_for_weaknesses();
                    }
                    agent::check(config, args.host_kubeconfig.is_none(), report);
                    if asks_host {
                        host::ask(config, args.host_kubeconfig.as_deref(), report);
                    }
                });
            } else if asks_host {
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
    let good = report.write(&args.file, args.output, &args.accept, out)?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests;
