//! The same in protobuf, for clients that accept nothing else.
//!
//! The decisions are those for JSON. This module only finds and removes the same fields in the other encoding. The envelope of
//! an object has its type, so one function handles all responses of the host: an object, its metadata, a list of either, or a
//! Status.
//!
//! Reading order: `kind`, `names`, `object` (the places of an object), `list`, `body`.

mod body;
mod condition;
mod credential;
mod entry;
mod envelope;
mod kind;
mod list;
mod names;
mod node_ports;
mod object;
mod reference;
mod rule;
mod selector;
mod status;

pub(super) use body::body;
pub(super) use entry::KEY;
pub(super) use envelope::METADATA;
pub(super) use kind::{Content, Kind};
pub use list::DEFAULT_LIST_LIMIT;
pub(super) use list::List;
pub(super) use object::ObjectReader;
pub(super) use status::status;

#[cfg(test)]
mod tests;
