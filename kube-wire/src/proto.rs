//! The protobuf wire form, and no more of protobuf than that.
//!
//! [`Reader`] walks the fields of one message over borrowed bytes and says where each lies, so that an editor can copy
//! what it does not change. [`Writer`] appends fields. Neither knows a schema. Groups, which Kubernetes has never used,
//! are an error; so is a length beyond the message, an overlong varint and a depth beyond [`MAX_DEPTH`].
//!
//! See <https://protobuf.dev/programming-guides/encoding/>.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{Field, MAX_DEPTH, Reader, Value, WireError};
pub use writer::{Writer, varint_len};
