//! `atoll check`: validates a configuration before anything is started with it.
//!
//! The code that reads a file is that of the binaries, so both refuse the same mistakes. Then the files that it names are
//! checked: [`certificate`] checks one file ([`validity`]: its dates), [`server`] and [`agent`] find the files and check how
//! they fit together.
//! On request, [`host`] checks the host cluster; [`weakness`] defines the kinds of weaknesses that it can find.

mod agent;
mod certificate;
mod host;
mod report;
mod server;
mod validity;
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
/// Reads a file with a ProxyServerConfiguration, a ProxyAgentConfiguration or both, as the binaries do, and reports all
/// mistakes with their lines. Also checks the certificates, keys and kubeconfigs that the file names: whether a key
/// matches its certificate, whether a CA certificate is one, what has expired or expires soon, and whether each virtual
/// cluster has its own client CA.
///
/// With --host, also checks the host cluster of a proxy-agent. It reports what prevents the agent from working, and what
/// on the host weakens the isolation of virtual clusters, with advice for each.
///
/// Exits with 1 if there is a mistake or a weakness, and with 0 otherwise, even if there are warnings.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll check /etc/atoll/proxy-server.yaml\n  \
    atoll check --host proxy-agent.yaml && systemctl restart proxy-agent\n  \
    atoll check --host --accept node-label --accept free-volume proxy-agent.yaml\n  \
    atoll check --host -o json proxy-agent.yaml | jq '.items[] | select(.severity == \"weakness\")'")]
pub(crate) struct Args {
    /// The configuration file. As in the binaries, documents of other kinds are ignored.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Also check the host cluster of a proxy-agent, with the agent's credential: whether it answers, whether its version
    /// is supported, whether the agent has all rights of configs/kubernetes/agent-rbac.yaml, which virtual clusters have
    /// no nodes, and what weakens their isolation (--accept lists the kinds). Writes nothing. Reads lists page by page,
    /// and reports on standard error what takes longer than three seconds. It cannot see the flags of kube-apiserver: the
    /// status of a running agent shows whether the plugin ValidatingAdmissionPolicy is disabled.
    #[arg(long)]
    host: bool,

    /// Check the host with this kubeconfig instead of the agent's credential, for example because of `inCluster: true`.
    /// Its user needs the rights to list all resources and to create SubjectAccessReviews. The agent's own rights are not
    /// checked then. Implies --host.
    #[arg(long, value_name = "KUBECONFIG")]
    host_kubeconfig: Option<PathBuf>,

    /// Accept weaknesses of this kind: they are only counted. Can be given several times.
    #[arg(long, value_name = "KIND", value_enum)]
    accept: Vec<Check>,

    /// The output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: Format,
}

/// Checks the file and writes the report.
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
                report.mistakes.general(format_args!("--host requires a {agent}, and the file has none"));
            }
            if !holds(server) && !holds(agent) {
                let others: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
                let only = if others.is_empty() { "" } else { ", only " };
                let others = others.join(", ");
                report.mistakes.general(format_args!("the file has no {server} and no {agent}{only}{others}"));
            }
        }
    }
    let good = report.write(&args.file, args.output, &args.accept, out)?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests;
