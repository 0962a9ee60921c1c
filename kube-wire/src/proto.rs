//! The protobuf wire format only.
//!
//! [`Reader`] iterates over the fields of one message in borrowed bytes, with the position of each, so that an editor can copy
//! unchanged fields. [`Writer`] appends fields. Neither knows a schema. Errors are groups, which Kubernetes has never used, a
//! length beyond the message, an overlong varint, and a depth beyond [`MAX_DEPTH`].
//!
//! See <https://protobuf.dev/programming-guides/encoding/>.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{Field, MAX_DEPTH, Reader, Value, WireError};
pub use writer::{Writer, varint_len};
