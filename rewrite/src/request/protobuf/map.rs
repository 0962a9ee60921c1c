//! Entries of maps: each is a message of a key and a value
//! (<https://protobuf.dev/programming-guides/encoding/#maps>).

use std::borrow::Cow;
use std::ops::Range;

use kube_wire::proto::Writer;

use super::role::not_ours;
use super::{Found, Mapper};
use crate::json::{Fault as _, Step};
use crate::program::Place;
use crate::request::Refusal;

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

impl Entry<'_> {
    /// Adds an entry to a map that is the field `number` of the message that `message` holds.
    pub(super) fn write(message: &mut Writer, number: u32, key: &str, value: &str) {
        let mut entry = Writer::new();
        entry.bytes(KEY, key.as_bytes());
        entry.bytes(VALUE, value.as_bytes());
        message.bytes(number, &entry.into_bytes());
    }
}

// === impl Mapper ===

impl<'b> Mapper<'_, 'b> {
    /// Handles the entry at `range` of a map with a place, or of one in which some keys have places.
    pub(super) fn entry(
        &mut self,
        place: Option<Place>,
        values: &[(Box<str>, Place)],
        range: Range<usize>,
    ) -> Result<(), Refusal> {
        let entry = self.read_entry(range)?;
        let result = match place {
            Some(Place::NodeSelector) => self.node_selector(&entry),
            Some(Place::OwnLabels) => self.own_label(&entry),
            Some(Place::OwnAnnotations) => self.own_annotation(&entry),
            Some(Place::RoleLabels) => self.role_label(&entry),
            Some(Place::RoleAnnotations) => self.role_annotation(&entry),
            Some(Place::HiddenKeys) => not_ours(&entry),
            _ => {
                let known = values.iter().find(|(key, _)| **key == entry.key);
                self.credential(known.map(|(_, place)| *place), &entry);
                Ok(())
            }
        };
        result.map_err(|refusal| refusal.within(Step::Key(&entry.key)))
    }

    /// The data of the host in token Secrets.
    fn credential(&mut self, place: Option<Place>, entry: &Entry<'_>) {
        if self.is_token
            && place == Some(Place::SecretNamespace)
            && let Some(value) = &entry.value
            && let Some(host) = self.request.token_namespace(entry.text)
        {
            self.splice.replace(value, host);
        }
    }

    pub(super) fn read_entry(&self, range: Range<usize>) -> Result<Entry<'b>, Refusal> {
        let found_key = self.find(range.clone(), KEY)?;
        let key = found_key.as_ref().map_or(&b""[..], |key| self.splice.bytes(key));
        let value = self.find(range, VALUE)?;
        let text = value.as_ref().map_or(&b""[..], |value| self.splice.bytes(value));
        Ok(Entry { key: String::from_utf8_lossy(key), found_key, text, value })
    }
}
