//! The addresses from which other proxy-servers have dialled this one.
//!
//! A name is resolved every 30 s. So that a new proxy-server can serve all clusters at once, this process dials it back
//! at the address from which the new one has dialled.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use dial::Callers;
use tokio::sync::watch;

/// The addresses of all connected proxy-servers.
#[derive(Debug, Default)]
pub struct PeerAddresses {
    /// One entry for each connection.
    connections: Mutex<Vec<IpAddr>>,
    addresses: watch::Sender<BTreeSet<IpAddr>>,
}

/// A connection. Dropping it removes its address.
#[derive(Debug)]
pub struct PeerAddress {
    address: IpAddr,
    of: Arc<PeerAddresses>,
}

// === impl PeerAddresses ===

impl PeerAddresses {
    /// Adds a connection.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> PeerAddress {
        let address = address.to_canonical();
        self.change(|connections| connections.push(address));
        PeerAddress { address, of: Arc::clone(self) }
    }

    /// Reports the addresses.
    pub fn follow(&self) -> Callers {
        self.addresses.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut Vec<IpAddr>)) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut connections);
        let all = connections.iter().copied().collect();
        // Under the lock, so that the last change is also reported last.
        self.addresses.send_if_modified(|addresses| {
            let is_new = *addresses != all;
            *addresses = all;
            is_new
        });
    }
}

impl Drop for PeerAddress {
    fn drop(&mut self) {
        self.of.change(|connections| {
            if let Some(at) = connections.iter().position(|address| *address == self.address) {
                connections.swap_remove(at);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stays_until_its_last_connection_ends() {
        let addresses = Arc::new(PeerAddresses::default());
        let follow = addresses.follow();
        let first = addresses.enter("10.0.0.7".parse().unwrap());
        let second = addresses.enter("::ffff:10.0.0.7".parse().unwrap());
        let seen = || follow.borrow().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(seen(), ["10.0.0.7"]);
        drop(first);
        assert_eq!(seen(), ["10.0.0.7"]);
        drop(second);
        assert_eq!(seen(), [""; 0]);
    }
}
