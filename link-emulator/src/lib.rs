//! A bad network between a cloud and a site on one machine: round-trip time, loss, rate, MTU, a NAT that forgets, silence.
//!
//! A [`Link`] makes two network namespaces and a TUN device in each, and carries IP packets from one device to the other. So
//! the TCP of the kernel meets real loss and real delay, as with tc-netem(8), which many kernels lack. The programs under
//! test start with `ip netns exec`. Only root can make a link.
//!
//! What is *not* here: reordering and duplication of packets, IPv6, and more than two ends.
//!
//! Reading order: [`Quality`], `direction` (delay, loss and rate of one direction, without I/O), `mappings` (the table of a
//! NAT, without I/O), `namespaces`, [`Link`].

mod direction;
mod link;
mod mappings;
mod namespaces;
mod quality;

pub use link::{Link, Traffic};
pub use namespaces::{CLOUD, Namespaces, SITE};
pub use quality::Quality;
