//! Responses: maps bodies of the host for a virtual cluster.
//!
//! It replaces names of the host by virtual names, hides objects of others, and removes from each object what Atoll has added.
//! An unusual object is not an error: text that cannot be a name does not change.
//!
//! Reading order: `settings` and `filter`; `decision` (whether an object is visible), `names` (how names are shown), `object` (the
//! places of an object); [`View`], [`ListStream`], [`WatchStream`]; then the same in protobuf.

mod binding;
mod condition;
mod decision;
mod error;
mod filter;
mod item_waits;
mod key;
mod key_map;
mod last_applied;
mod limit;
mod list;
mod names;
mod node_ports;
mod object;
mod owner_fields;
mod pod;
mod proto_list;
mod proto_watch;
mod protobuf;
mod reference;
mod renamed;
mod review;
mod role;
mod rule;
mod seal;
mod selector;
mod settings;
mod shared;
mod showing;
mod status;
mod table;
mod tally;
mod value_buffer;
mod watch;
mod whole;

pub use crate::credential::Certificate;
pub use error::{StreamError, Unreadable};
pub use filter::{Filter, Projected, ProjectedObjects, Verdict};
pub use item_waits::ExistingNamespaces;
pub use limit::DEFAULT_ITEM_LIMIT;
pub use list::ListStream;
pub use proto_list::ProtoListStream;
pub use proto_watch::ProtoWatchStream;
pub use protobuf::DEFAULT_LIST_LIMIT;
pub use showing::Showing;
pub(crate) use watch::bookmark_in;
pub use watch::{Arrived, Beginning, Bookmark, WatchStream};
pub use whole::View;

#[cfg(test)]
pub(crate) mod tests;
