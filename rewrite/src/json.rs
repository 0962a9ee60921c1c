//! A scanner for a JSON text in memory, and the resulting edits.
//!
//! It builds no tree: a [`Cursor`] scans the text, enters the objects and arrays that the caller wants, skips everything else,
//! and collects [`Edits`], which are spliced into the output afterwards. Skipped values are still checked, byte by byte, against
//! the grammar of Go's `encoding/json` (RFC 8259, at most 10,000 levels, invalid UTF-8 allowed), so that no text can have
//! different meanings for this engine and for Kubernetes.
//!
//! What is *not* here: which fields of an object matter ([`program`](crate::program)), and how they change.
//!
//! Reading order: [`Text`], [`Edits`], [`Cursor`], [`Cut`], [`Boundary`].

mod block;
mod boundary;
mod container;
mod cursor;
mod cut;
mod edit;
mod fault;
mod nesting;
mod sample;
mod skip;
mod text;
mod weight;

pub use boundary::Boundary;
pub use container::{Extent, Outcome};
pub use cursor::Cursor;
pub use cut::Cut;
pub(crate) use edit::Reserved;
pub use edit::{Edits, Mark};
pub use fault::{Defect, Fault, FieldPath, Malformed, Step};
pub use sample::{Form, counts_if_sampled, sample};
pub(crate) use sample::{counts_of_text, sample_of_text};
pub(crate) use text::unquoted;
pub use text::{Text, quoted};
pub(crate) use weight::OBJECT;
pub use weight::{MAX_WEIGHT, weight, weight_of_managed_names};

/// Objects and arrays below this level are not looked at: a sample omits them, and names of field managers in them are not
/// checked. No schema of a custom resource has as many levels.
pub(crate) const DEEPEST: usize = 200;

#[cfg(test)]
pub(crate) mod tests;
