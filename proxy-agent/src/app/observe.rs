//! The listeners for probes and for the operator.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ops::drain::Tasks;
use ops::listen::Listener;
use ops::metrics::{Build, Registry};
use ops::probes::{Answer, Checks, Pages};

use super::standing::Standing;

pub(super) fn serve(probes: Listener, admin: Listener, standing: Standing, tasks: &Tasks) {
    let up = &standing.tunnels;
    let metrics = Registry::new(Build { component: "proxy-agent", version: env!("CARGO_PKG_VERSION") });
    let counted = Arc::clone(up);
    metrics.observe("atoll_tunnels", "Tunnels to proxy-servers that are up.", move || {
        i64::try_from(counted.count()).unwrap_or(i64::MAX)
    });
    let livez = Checks::new().with("ping", Duration::from_secs(1), || async { Ok::<_, Infallible>(()) });
    let counted = Arc::clone(up);
    let readyz = livez.clone().with("tunnel", Duration::from_secs(1), move || {
        let count = counted.count();
        async move { if count == 0 { Err("no tunnel to a proxy-server is up") } else { Ok(()) } }
    });
    let probe_pages = Pages::new("proxy-agent").with_probes(&livez, &readyz);
    let standing = Arc::new(standing);
    let people = Arc::clone(&standing);
    let pages = Pages::new("proxy-agent")
        .with_probes(&livez, &readyz)
        .with_metrics(&metrics)
        .with("/status", "tunnels, virtual clusters and the host, as JSON", move |_| {
            let status = serde_json::to_vec(&standing.status()).expect("strings and numbers always serialise");
            std::future::ready(Answer::json(status))
        })
        .with("/statusz", "the same for people; ?wide", move |query| {
            std::future::ready(Answer::text(people.status().text(query.has("wide"))))
        });
    tasks.spawn("probes", ops::probes::serve(probes, probe_pages, tasks.clone(), "probes"));
    tasks.spawn("admin", ops::probes::serve(admin, pages, tasks.clone(), "admin"));
}
