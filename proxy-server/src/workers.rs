//! Which worker serves a connection.
//!
//! A request passes through two connections here: that of its client, and the tunnel. They should be on the same
//! [worker](ops::workers):
//!
//! ```text
//! main     reload, Karmada, probes, admin, drain: whatever may take long, and nothing that a request waits for
//! worker 0 accepts clients (HTTP proxy)   \
//! worker 1 accepts clients (direct)        |  each: TLS, HTTP, admission, tunnels, the access log of its connections
//! worker 2 accepts agents                  |
//! ...                                     /
//! ```
//!
//! - **Tunnels.** An agent's connection moves, as soon as it is accepted, to the worker with the fewest tunnels
//!   ([`Workers::likely`]). An agent with several tunnels has several cores. [`crate::tunnel::Tunnel`] records its worker.
//! - **Clients.** CONNECT or SNI names the cluster before the first request. The bytes up to there are read on the worker
//!   that accepted the connection. Then the socket moves to a worker that has a tunnel of the cluster (the registry knows which;
//!   several tunnels share the connections), unless it is there already. The socket moves once at most, before TLS begins,
//!   because a TLS session cannot move.
//! - **Paths.** A connection whose requests name the cluster (`/clusters/NAME`), and one through an HTTP proxy with TLS,
//!   stays where it was accepted.
//! - **The worker is only a preference.** A cluster may change its agent while clients are connected, and one connection
//!   may use several clusters. All handles (`h2` streams, permits, budgets) can be used from any thread, but a request
//!   whose tunnel is on another worker wakes two threads. If a cluster has several tunnels,
//!   [`crate::registry::Registry::reserve`] prefers one on its own worker.
//! - **Load.** If the tasks of a worker wait for more than 10 ms, connections that would move to it move to the
//!   worker whose tasks wait for the shortest time ([`Workers::elsewhere`]), and new tunnels avoid it. A
//!   flood of one cluster then delays the other clusters of its tunnel less. TLS handshakes take turns, so that a flood of
//!   them delays requests by one step of a handshake at a time (`endpoint::handshakes`).
//! - **Nothing on a worker blocks.** `block_in_place` would panic there. Files are read on the main runtime or in
//!   `spawn_blocking`. The longest work of a worker is a handshake or a minted certificate, below a millisecond.

pub use ops::workers::{Assignment, Threads, Worker, WorkerId, Workers, here};
