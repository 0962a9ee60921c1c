//! `atoll check`: validates a configuration before a binary is started with it.
//!
//! It reads the file with the code of the binaries, so both report the same mistakes. Then it checks the files that the
//! configuration names: [`certificate`] checks one file ([`validity`]: its dates), and [`server`] and [`agent`] check
//! how the files fit together. With `--host`, [`host`] checks the host cluster. [`weakness`] defines the kinds of
//! weaknesses.

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

/// Check a configuration and the files that it names.
///
/// Reads a file with a ProxyServerConfiguration, a ProxyAgentConfiguration or both, as the binaries do, and reports all
/// mistakes with their lines. The command also checks the certificates, keys and kubeconfigs that the file names:
/// whether a key matches its certificate, whether a CA certificate belongs to a CA, which certificates have expired or
/// expire soon, and whether each virtual cluster has its own client CA.
///
/// With --host, the command also checks the host cluster of a proxy-agent. It reports what prevents the agent from
/// working. It also reports weaknesses: what on the host weakens the isolation of virtual clusters, with advice for
/// each.
///
/// Exits with 1 if there is a mistake or a weakness, and with 0 otherwise, even if there are warnings.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Check the configuration of a proxy-server\n  \
    atoll check /etc/atoll/proxy-server.yaml\n\n  \
    # Restart a proxy-agent only if its configuration and its host are good\n  \
    atoll check --host proxy-agent.yaml && systemctl restart proxy-agent\n\n  \
    # Accept two kinds of weaknesses of the host\n  \
    atoll check --host --accept node-label --accept free-volume proxy-agent.yaml\n\n  \
    # List the weaknesses of the host\n  \
    atoll check --host -o json proxy-agent.yaml | jq '.items[] | select(.severity == \"weakness\")'")]
pub(crate) struct Args {
    /// The configuration file. Like the binaries, the command ignores documents of other kinds.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Also check the host cluster of a proxy-agent, with the agent's credential: whether it responds, whether its
    /// version is supported, whether the agent has all rights of configs/kubernetes/agent-rbac.yaml, which virtual
    /// clusters have no nodes, and what weakens their isolation (--accept lists the kinds). The command writes nothing
    /// to the host. It reads lists page by page, and reports on standard error which check takes longer than three
    /// seconds. It cannot see the flags of kube-apiserver. The status of a running agent shows whether the admission
    /// plugin ValidatingAdmissionPolicy is disabled.
    #[arg(long)]
    host: bool,

    /// Check the host with this kubeconfig instead of the agent's credential, for example if the configuration has
    /// `inCluster: true`. Its user needs the rights to list all resources and to create SubjectAccessReviews. The
    /// command then does not check the agent's own rights. Implies --host.
    #[arg(long, value_name = "KUBECONFIG")]
    host_kubeconfig: Option<PathBuf>,

    /// Accept weaknesses of this kind: the command only counts them. Can be given several times.
    #[arg(long, value_name = "KIND", value_enum)]
    accept: Vec<Check>,

    /// The output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: Format,
}

/// Checks the file and writes the report.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut report = Report::default();
    let checks_host = args.host || args.host_kubeconfig.is_some();
    match kinds(&args.file) {
        Err(errors) => report.add_errors(&errors),
        Ok(kinds) => {
            let has = |kind: &str| kinds.iter().any(|found| **found == kind);
            let (server, agent) = (ProxyServerConfiguration::KIND, ProxyAgentConfiguration::KIND);
            if has(server) {
                report.examine(&args.file, server::check);
            }
            if has(agent) {
                report.examine(&args.file, |config, report| {
                    if checks_host {
                        report.include_weaknesses();
                    }
                    agent::check(config, args.host_kubeconfig.is_none(), report);
                    if checks_host {
                        host::check(config, args.host_kubeconfig.as_deref(), report);
                    }
                });
            } else if checks_host {
                report.mistakes.general(format_args!("--host requires a {agent}, and the file has none"));
            }
            if !has(server) && !has(agent) {
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
