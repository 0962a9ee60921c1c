//! Entries of maps: each is a message of a key and a value
//! (<https://protobuf.dev/programming-guides/encoding/#maps>).

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use kube_wire::proto::Writer;

use super::super::refusal::{Reason, Refusal};
use super::fields::Fields;
use crate::name::is_hidden;
use crate::protobuf::{Found, Splice};

const KEY: u32 = 1;
const VALUE: u32 = 2;

/// An entry of a map. Absent fields are empty.
pub(super) struct Entry<'b> {
    pub(super) key: Cow<'b, str>,
    /// The range of the key.
    pub(super) found_key: Option<Found>,
    /// The value.
    pub(super) text: &'b [u8],
    /// The range of the value.
    pub(super) value: Option<Found>,
}

// === impl Entry ===

impl<'b> Entry<'b> {
    /// Adds an entry to a map that is the field `number` of the message that `message` holds.
    pub(super) fn write(message: &mut Writer, number: u32, key: &str, value: &str) {
        let mut entry = Writer::new();
        entry.bytes(KEY, key.as_bytes());
        entry.bytes(VALUE, value.as_bytes());
        message.bytes(number, &entry.into_bytes());
    }

    /// The entry at `range`.
    pub(super) fn read(fields: &Fields<'_, 'b>, range: Range<usize>) -> Result<Self, Refusal> {
        let [found_key, value] = fields.splice.each(&range, [Some(KEY), Some(VALUE)])?;
        let key = String::from_utf8_lossy(fields.content(found_key.as_ref()));
        let text = fields.content(value.as_ref());
        Ok(Self { key, found_key, text, value })
    }

    /// Refuses Atoll's own labels and annotations.
    pub(super) fn not_ours(&self) -> Result<(), Refusal> {
        if is_hidden(&self.key) { Err(Reason::Protected.into()) } else { Ok(()) }
    }

    /// Replaces the key by that on the host.
    pub(super) fn rename_key(&self, host: String, splice: &mut Splice<'_>) {
        if let Some(found) = &self.found_key {
            splice.replace(found, Bytes::from(host));
        }
    }
}
