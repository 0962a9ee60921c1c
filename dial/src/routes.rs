//! The routes to the proxy-servers and the state of their tunnels, for readiness and status.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ops::date::Moment;
use ops::log::chain;
use protocol::{Acceptance, Authority, Verdict};
use tokio::sync::watch;

/// The maximum length of an error message, in characters. The reason that a proxy-server gives can be longer.
const MAX_WHY: usize = 300;

/// All routes. There is one for each tunnel to each address to which a configured name resolves.
#[derive(Debug, Default)]
pub struct Tunnels(Mutex<Routes>);

#[derive(Debug, Default)]
struct Routes {
    next: u64,
    by_number: BTreeMap<u64, RouteState>,
}

/// Reports the state of a route. Dropping it removes the route.
#[derive(Debug)]
pub struct Route {
    number: u64,
    tunnels: Arc<Tunnels>,
}

/// A tunnel that is up. Dropping it removes the route.
#[derive(Debug)]
pub struct TunnelUp {
    route: Route,
    verdicts: Verdicts,
}

/// Gets each verdict of the proxy-server about the clusters that this agent offers.
pub type Verdicts = watch::Sender<Verdict>;

/// The state of a route.
#[derive(Clone, Debug)]
pub struct RouteState {
    /// The configured address.
    pub server: Authority,
    /// The resolved address; `None` if it is not resolved here, or cannot be resolved.
    pub address: Option<SocketAddr>,
    /// The time of the last change of state.
    pub since: Moment,
    /// The tunnel, or why there is none.
    pub tunnel: Result<ConnectedTunnel, Arc<str>>,
}

/// What the proxy-server says.
#[derive(Clone, Debug)]
pub struct ConnectedTunnel {
    /// About itself, in its response to the registration.
    pub acceptance: Acceptance,
    /// About the clusters that this agent offers.
    pub verdict: watch::Receiver<Verdict>,
}

// === impl Tunnels ===

impl Tunnels {
    /// Adds a route without a tunnel.
    pub fn route(self: &Arc<Self>, server: &Authority, address: Option<SocketAddr>) -> Route {
        let state = RouteState {
            server: server.clone(),
            address,
            since: Moment::now(),
            tunnel: Err("not connected yet".into()),
        };
        let mut routes = self.lock();
        let number = routes.next;
        routes.next += 1;
        routes.by_number.insert(number, state);
        Route { number, tunnels: Arc::clone(self) }
    }

    /// The number of tunnels that are up.
    pub fn count(&self) -> usize {
        self.lock().by_number.values().filter(|route| route.tunnel.is_ok()).count()
    }

    /// All routes, in the order in which they were added.
    pub fn all(&self) -> Vec<RouteState> {
        self.lock().by_number.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Routes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Route ===

impl Route {
    /// Records that the tunnel is up.
    pub fn up(self, acceptance: Acceptance) -> TunnelUp {
        let (verdicts, verdict) = watch::channel(Verdict::default());
        self.set(Ok(ConnectedTunnel { acceptance, verdict }));
        TunnelUp { route: self, verdicts }
    }

    /// Records that there is no tunnel, and why.
    pub fn down(&self, error: &dyn std::error::Error) {
        let why: String = chain(error).to_string().chars().take(MAX_WHY).collect();
        self.set(Err(why.into()));
    }

    fn set(&self, tunnel: Result<ConnectedTunnel, Arc<str>>) {
        if let Some(state) = self.tunnels.lock().by_number.get_mut(&self.number) {
            // A failed attempt does not change the time since which the tunnel has been down.
            if tunnel.is_ok() || state.tunnel.is_ok() {
                state.since = Moment::now();
            }
            state.tunnel = tunnel;
        }
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.tunnels.lock().by_number.remove(&self.number);
    }
}

// === impl TunnelUp ===

impl TunnelUp {
    /// Reports the verdicts of the proxy-server.
    pub fn verdicts(&self) -> Verdicts {
        self.verdicts.clone()
    }

    /// The last verdict.
    pub fn verdict(&self) -> watch::Receiver<Verdict> {
        self.verdicts.subscribe()
    }

    /// Records that the tunnel has ended.
    pub fn ended(self) -> Route {
        self.route.set(Err("the tunnel ended".into()));
        self.route
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_opens_closes_and_is_removed() {
        let tunnels = Arc::new(Tunnels::default());
        let route = tunnels.route(&"proxy:8091".parse().unwrap(), None);
        assert_eq!((tunnels.count(), tunnels.all().len()), (0, 1));
        let acceptance = Acceptance { protocol: protocol::ProtocolVersion::CURRENT, server: "s".into(), domain: None };
        let up = route.up(acceptance);
        assert_eq!(tunnels.count(), 1);
        let refusal = Some(protocol::Refusal::new(protocol::RefusalReason::NotGranted, "no"));
        let verdict = Verdict { refusal, ..Verdict::default() };
        up.verdicts().send_replace(verdict.clone());
        assert!(tunnels.all()[0].tunnel.as_ref().is_ok_and(|tunnel| *tunnel.verdict.borrow() == verdict));
        let route = up.ended();
        assert_eq!((tunnels.count(), tunnels.all().len()), (0, 1));
        route.down(&std::io::Error::other("x".repeat(1000)));
        assert!(tunnels.all()[0].tunnel.as_ref().is_err_and(|why| why.len() == MAX_WHY));
        drop(route);
        assert!(tunnels.all().is_empty());
    }
}
