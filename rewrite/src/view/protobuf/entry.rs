//! Entries of maps: each is a message of a key and a value
//! (<https://protobuf.dev/programming-guides/encoding/#maps>).

use std::ops::Range;

use super::super::error::Unreadable;
use crate::protobuf::{Found, Splice};

pub(in crate::view) const KEY: u32 = 1;
pub(super) const VALUE: u32 = 2;

/// An entry of a map.
pub(super) struct Entry<'b> {
    /// Empty if there is none.
    pub(super) key: &'b [u8],
    /// `None` if it is empty.
    pub(super) value: Option<Found>,
    pub(super) range: Range<usize>,
}

// === impl Entry ===

impl<'b> Entry<'b> {
    pub(super) fn read(splice: &Splice<'b>, range: &Range<usize>) -> Result<Self, Unreadable> {
        let key = splice.text(range, Some(KEY))?;
        let value = splice.only(range, VALUE)?.filter(|value| !value.is_empty());
        Ok(Self { key, value, range: range.clone() })
    }

    /// The field of the key.
    pub(super) fn found_key(&self, splice: &Splice<'b>) -> Result<Option<Found>, Unreadable> {
        Ok(splice.only(&self.range, KEY)?)
    }
}
