//! What a virtual cluster has on its host outside its namespaces: cluster-scoped objects of its own, its overlays on objects
//! that virtual clusters share, and its label on nodes.
//!
//! `docs/host-objects.md` lists all objects of Atoll on a host. What is *not* here: namespaces with their content, which
//! [`removal`](crate::declared::removal) deletes.
//!
//! Reading order: [`Found`], [`search`] (all of them, of all virtual clusters), [`remove`] (one of them).

mod collection;
mod found;
mod remove;
mod search;

pub use found::{Found, Hold};
pub use remove::{RemoveError, remove};
pub use search::search;
