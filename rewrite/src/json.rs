//! A scanner over one JSON text in memory, and the edits it leads to.
//!
//! Nothing is built: a [`Cursor`] walks the text, steps into the objects and arrays that the caller asks for, skips
//! everything else, and collects [`Edits`] that are spliced into the output afterwards. What is skipped is still
//! checked, byte by byte, against the grammar that Go's `encoding/json` accepts (RFC 8259, at most 10,000 levels,
//! invalid UTF-8 let through), so that no text can mean one thing to us and another to Kubernetes.
//!
//! What is *not* here: which places of an object matter ([`program`](crate::program)) and what is done there.
//!
//! Reading order: [`Cursor`], its methods on containers, [`Text`], [`Edits`], [`Boundary`].

mod block;
mod boundary;
mod container;
mod cursor;
mod edit;
mod fault;
mod nesting;
mod skip;
mod text;
mod weight;

pub use boundary::Boundary;
pub use container::{Extent, Fate};
pub use cursor::Cursor;
pub use edit::{Edits, Mark};
pub use fault::{Defect, Fault, FieldPath, Malformed, Step};
pub use text::{Text, quoted};
pub use weight::{MAX_WEIGHT, weight};

#[cfg(test)]
pub(crate) mod tests;
