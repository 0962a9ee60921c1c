//! The documents that this process stores: discovery, OpenAPI and the version, so that they do not cross a slow network again and
//! again ([`protocol::digest`]).
//!
//! An agent decides about each request, so a stored document is only a way to save bytes: it is sent to a client only if the agent
//! has just made the same one for this request. Documents that arrive uncompressed are not stored, because their network is fast.
//!
//! Documents are stored as they arrive: compressed. All of them, with those that still arrive, have at most [`store::MAX_TOTAL`] bytes.
//! If there is no space, the cluster with the most bytes gives up what it has not used for the longest time. A document that arrives
//! counts as used when it begins to arrive, so a client that stops reading cannot keep its bytes for long.
//!
//! Reading order: `key` (which requests are for documents), `store` (the maps and their limits), `shared` (the store of all
//! connections), `storing` (a body that is stored while it arrives), `stored` (a body that comes from here).

mod key;
mod shared;
mod store;
mod stored;
mod storing;

pub(super) use key::Key;
pub(crate) use shared::Documents;
pub(super) use shared::{Arriving, Document};
pub(super) use stored::{Removed, StoredBody};
pub(super) use storing::Storing;

#[cfg(test)]
mod tests;
