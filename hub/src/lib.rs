//! The core of watch sharing: one upstream watch of a resource serves the watchers of all virtual clusters.
//!
//! A [`Hub`] holds the objects of one resource of one host, a window of the latest events, and the watchers. It works
//! like kube-apiserver's cacher (`k8s.io/apiserver/pkg/storage/cacher`), with two differences. Objects and events are
//! partitioned by virtual cluster, so an event costs nothing for the watchers of other clusters. A watcher has no queue
//! of events. It has a position in the window, and its watch ends when the next event that it needs leaves the window.
//!
//! The crate does no I/O, knows no clock and parses nothing. A driver reads the upstream watch, decides to which
//! clusters an object belongs ([`Place`]), and renders what the watchers get. The methods of [`Hub`] are of four kinds:
//!
//! - The driver reports what it has read: [`listed`](Hub::listed), [`synced`](Hub::synced), [`event`](Hub::event),
//!   [`bookmark`](Hub::bookmark), [`clear`](Hub::clear).
//! - It reports changes of membership: [`close`](Hub::close) and [`moved`](Hub::moved). To serve a closed cluster again, it
//!   lists its objects: [`begin_opening`](Hub::begin_opening), [`listed_for`](Hub::listed_for), and [`open`](Hub::open) or
//!   [`abandon`](Hub::abandon).
//! - It serves clients: [`snapshot`](Hub::snapshot) for lists, and [`admit`](Hub::admit), [`next`](Hub::next) and
//!   [`leave`](Hub::leave) for watches.
//! - It reports the time: [`tick`](Hub::tick).
//!
//! Methods that make progress possible for watchers add their wakers to [`Wakes`]. The driver wakes them after it has
//! released its lock.
//!
//! Read the modules in this order: `object`, `place`, `window`, `selection`, `snapshot`, `admission`, `partition`, `latest`,
//! `store`, `delivery`, `watcher`, `watchers`, `hub`. `moment`, `limits`, `budget` and `wakes` are small, and used by all of
//! them.

mod admission;
mod budget;
mod delivery;
mod hub;
mod latest;
mod limits;
mod moment;
mod object;
mod partition;
mod place;
mod selection;
mod snapshot;
mod store;
mod wakes;
mod watcher;
mod watchers;
mod window;

pub use admission::{Admission, Start, WatchRequest};
pub use budget::{Budget, Usage};
pub use delivery::{Change, End, Next, Shown};
pub use hub::{Hub, Opened, Statistics};
pub use limits::Limits;
pub use moment::Moment;
pub use object::{InvalidLabels, InvalidVersion, Key, Labels, NewObject, Object, ResourceVersion};
pub use partition::Closing;
pub use place::{ClusterId, ClusterSet, Place};
pub use selection::{Scope, Selection};
pub use snapshot::Snapshot;
pub use wakes::Wakes;
pub use watchers::WatcherId;
pub use window::EventKind;
