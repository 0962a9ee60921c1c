//! A scanner for a protobuf message in memory, and the program with the positions of names in it.
//!
//! Like [`json`](crate::json), it builds no tree. A `Splice` iterates over the fields of the messages that the caller enters,
//! and collects edits. It corrects the length of each edited message, and copies everything else unchanged. A
//! [`ProtoProgram`] is the tree of a [`Program`](crate::Program) with field numbers instead of keys, so that both encodings
//! use one list of places.
//!
//! Messages that are not entered are not checked: they reach the host's own reader unchanged. Messages that are entered are
//! read more strictly than by Go. Go uses the last value of a repeated field, merges a second message into the first, and
//! ignores wire types in the entries of a map. All of that is refused here.
//!
//! What is *not* here: how each place changes (`request/protobuf.rs`, `view/protobuf.rs`).
//!
//! Reading order: `program`, `splice`, `length`, `toleration`, `lenient`, `weight`, `sample`.

mod length;
mod lenient;
mod named;
mod program;
mod sample;
mod splice;
pub(crate) mod toleration;
mod weight;

pub(crate) use lenient::fields;
pub use named::{ObjectMetadata, ObjectName};
pub use program::ProtoProgram;
pub(crate) use program::{Field, Inside, KindProgram, Message};
pub use sample::{counts_if_sampled, sample};
pub(crate) use splice::{EachError, Found, Splice};
pub use weight::weight;
