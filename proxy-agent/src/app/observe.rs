//! What probes and the operator see.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ops::drain::Tasks;
use ops::listen::Listener;
use ops::metrics::{Build, Registry};
use ops::probes::{Checks, Pages};

use crate::ready::Tunnels;

pub(super) fn serve(probes: Listener, admin: Listener, up: &Arc<Tunnels>, tasks: &Tasks) {
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
    let pages = Pages::new("proxy-agent").with_probes(&livez, &readyz).with_metrics(&metrics);
    tasks.spawn("probes", ops::probes::serve(probes, probe_pages, tasks.clone(), "probes"));
    tasks.spawn("admin", ops::probes::serve(admin, pages, tasks.clone(), "admin"));
}
