//! A scanner over one protobuf message in memory, and the program that says where names stand in it.
//!
//! Like [`json`](crate::json) this builds nothing. A `Splice` walks the fields of the messages that the caller steps
//! into, and collects edits; a length that stands before an edited message is corrected on the way out, everything else
//! is copied as it is. A [`ProtoProgram`] is the tree of a [`Program`](crate::Program) with field numbers in the place
//! of keys, so that one list of places serves both encodings.
//!
//! What is not descended into is not checked: it reaches the host's own reader as it came. What is descended into is
//! read more strictly than Go does, which takes a second value of a field for the right one, merges a second message
//! into the first, and looks at no wire type inside the entries of a map. All that is refused.
//!
//! What is *not* here: what is done at each place (`request/protobuf.rs`, `view/protobuf.rs`).
//!
//! Reading order: `descriptor`, `program`, `splice`, `toleration`.

pub(crate) mod descriptor;
mod named;
mod program;
mod splice;
pub(crate) mod toleration;

pub use named::{ObjectMetadata, ObjectName, event_namespace};
pub use program::ProtoProgram;
pub(crate) use program::{Field, Inside, KindMessage, KindProgram, Message};
pub(crate) use splice::{Found, Splice};
