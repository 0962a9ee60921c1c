//! The ways to the proxy-servers, and which of them are open: what readiness counts and status tells.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ops::date::Moment;
use protocol::{Acceptance, Authority};

/// In characters; what a proxy-server says to a refused agent can be longer.
const MAX_WHY: usize = 300;

/// All ways. There is one for each address that a configured name resolves to.
#[derive(Debug, Default)]
pub struct Tunnels(Mutex<Ways>);

#[derive(Debug, Default)]
struct Ways {
    next: u64,
    by_number: BTreeMap<u64, WayState>,
}

/// One way, for as long as it is held.
#[derive(Debug)]
pub struct Way {
    number: u64,
    tunnels: Arc<Tunnels>,
}

/// A tunnel that is up, for as long as it is held.
#[derive(Debug)]
pub struct Up<'w>(&'w Way);

/// What is known of one way.
#[derive(Clone, Debug)]
pub struct WayState {
    /// As configured.
    pub server: Authority,
    /// Where that is; `None` if nobody here resolves it, or could.
    pub address: Option<SocketAddr>,
    /// Since when it is what it is.
    pub since: Moment,
    /// Who is at the other end, or why nobody is.
    pub tunnel: Result<Acceptance, Arc<str>>,
}

// === impl Tunnels ===

impl Tunnels {
    /// One more way, on which there is no tunnel yet.
    pub fn way(self: &Arc<Self>, server: &Authority, address: Option<SocketAddr>) -> Way {
        let state =
            WayState { server: server.clone(), address, since: Moment::now(), tunnel: Err("not connected yet".into()) };
        let mut ways = self.lock();
        let number = ways.next;
        ways.next += 1;
        ways.by_number.insert(number, state);
        Way { number, tunnels: Arc::clone(self) }
    }

    /// How many tunnels are up.
    pub fn count(&self) -> usize {
        self.lock().by_number.values().filter(|way| way.tunnel.is_ok()).count()
    }

    /// Every way, in the order in which they were found.
    pub fn all(&self) -> Vec<WayState> {
        self.lock().by_number.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Ways> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Way ===

impl Way {
    /// A tunnel is up.
    pub fn up(&self, acceptance: Acceptance) -> Up<'_> {
        self.set(Ok(acceptance));
        Up(self)
    }

    /// There is none, and why.
    pub fn down(&self, error: &dyn std::error::Error) {
        let mut why = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            why.push_str(": ");
            why.push_str(&cause.to_string());
            source = cause.source();
        }
        let why: String = why.chars().take(MAX_WHY).collect();
        self.set(Err(why.into()));
    }

    fn set(&self, tunnel: Result<Acceptance, Arc<str>>) {
        if let Some(state) = self.tunnels.lock().by_number.get_mut(&self.number) {
            // A way that stays closed has been so since it was closed, whatever the newest attempt says.
            if tunnel.is_ok() || state.tunnel.is_ok() {
                state.since = Moment::now();
            }
            state.tunnel = tunnel;
        }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.tunnels.lock().by_number.remove(&self.number);
    }
}

// === impl Up ===

impl Drop for Up<'_> {
    fn drop(&mut self) {
        self.0.set(Err("the tunnel ended".into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_opens_closes_and_goes() {
        let tunnels = Arc::new(Tunnels::default());
        let way = tunnels.way(&"proxy:8091".parse().unwrap(), None);
        assert_eq!((tunnels.count(), tunnels.all().len()), (0, 1));
        let acceptance = Acceptance { protocol: protocol::ProtocolVersion::CURRENT, server: "s".into() };
        let up = way.up(acceptance);
        assert_eq!(tunnels.count(), 1);
        drop(up);
        assert_eq!(tunnels.count(), 0);
        way.down(&std::io::Error::other("x".repeat(1000)));
        assert!(tunnels.all()[0].tunnel.as_ref().is_err_and(|why| why.len() == MAX_WHY));
        drop(way);
        assert!(tunnels.all().is_empty());
    }
}
