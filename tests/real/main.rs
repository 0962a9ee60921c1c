//! The suites on a real host cluster, with release binaries as separate processes, and with files like those of an
//! operator.

mod access_log;
mod audit;
mod clusters;
mod commands;
mod containers;
mod declared;
mod demo;
mod destinations;
mod dist;
mod egress;
mod enrolment;
mod examples;
mod faults;
mod helm;
mod isolation;
mod karmada;
mod kubeedge;
mod leaks;
mod limits;
mod link;
mod manifests;
mod observe;
mod oidc;
mod operator;
mod pages;
mod peers;
mod physical;
mod plugin;
mod proposal;
mod reload;
mod soak;
mod status_page;
mod trace;
mod trial;
mod virtual_clusters;
mod walkthrough;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use atoll_tests::HostCluster;
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if arguments.list {
        return libtest_mimic::run(&arguments, trials(None)).exit_code();
    }
    let host = match HostCluster::up(1) {
        Ok(host) => Arc::new(host),
        Err(error) => {
            report(&error);
            return ExitCode::FAILURE;
        }
    };
    // The last handle stops the host. Drop it before the process exits.
    let conclusion = libtest_mimic::run(&arguments, trials(Some(&host)));
    trial::print_slowest();
    conclusion.exit_code()
}

fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    let mut trials = physical::trials(host);
    trials.extend(proposal::trials(host));
    trials.extend(faults::trials(host));
    trials.extend(commands::trials());
    trials.push(access_log::trial(host));
    trials.extend(audit::trials(host));
    trials.extend(clusters::trials(host));
    trials.extend(egress::trials(host));
    trials.extend(enrolment::trials(host));
    trials.extend(link::trials(host));
    trials.extend(reload::trials(host));
    trials.extend(declared::trials());
    trials.extend(demo::trials());
    trials.extend(destinations::trials());
    trials.extend(dist::trials());
    trials.extend(examples::trials());
    trials.extend(operator::trials(host));
    trials.extend(pages::trials());
    trials.extend(walkthrough::trials());
    trials.extend(peers::trials(host));
    trials.push(plugin::trial_of_kubectl());
    trials.push(status_page::trial(host));
    trials.push(isolation::trial());
    trials.push(leaks::trial());
    trials.extend(limits::trials(host));
    trials.extend(containers::trials(host));
    trials.push(manifests::trial());
    trials.push(trace::trial());
    trials.push(observe::trial(host));
    trials.extend(oidc::trials(host));
    trials.extend(helm::trials());
    trials.extend(virtual_clusters::trials());
    trials.extend(kubeedge::trials());
    trials.extend(soak::trial());
    trial::spread(karmada::trials(), trials)
}

/// A test that needs the host cluster.
pub(crate) fn case(
    name: &str,
    host: Option<&Arc<HostCluster>>,
    run: impl FnOnce(&HostCluster) -> anyhow::Result<()> + Send + 'static,
) -> Trial {
    let host = host.map(Arc::clone);
    trial::trial(name, move || run(&*host.context("no host cluster while listing")?))
}

#[expect(clippy::print_stderr, reason = "a test runner talks to the terminal")]
fn report(error: &anyhow::Error) {
    eprintln!("no host cluster: {error:?}");
}
