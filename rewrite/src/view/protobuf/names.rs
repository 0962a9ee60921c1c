//! Names in protobuf, as the virtual cluster sees them.

use std::ops::Range;

use super::super::decision::Decision;
use super::super::error::Unreadable;
use crate::Mapping;
use crate::json::Outcome;
use crate::mapping::identity::Seen;
use crate::mapping::role::SeenRole;
use crate::mapping::{FOREIGN_PREFIX, Shown};
use crate::protobuf::{Found, Message, Splice};

/// Shows names in the fields of a body.
pub(super) struct Names<'v, 'b> {
    pub(super) mapping: &'v Mapping,
    pub(super) splice: Splice<'b>,
}

// === impl Names ===

impl<'b> Names<'_, 'b> {
    /// The name of a namespace that determines whether the object is visible.
    pub(super) fn owner_namespace(&mut self, decision: &mut Decision<'_>, found: &Found) {
        if let Some(name) = decision.by_namespace(self.splice.bytes(found)) {
            self.splice.replace(found, name);
        }
    }

    /// The name of a namespace anywhere in the object.
    pub(super) fn namespace(&mut self, found: &Found) {
        match self.mapping.shown(self.splice.bytes(found)) {
            Shown::As(name) => self.splice.replace(found, name),
            Shown::Unchanged => {}
            Shown::Foreign => self.foreign(found),
        }
    }

    /// The uid of a Namespace.
    pub(super) fn uid(&mut self, found: &Found) {
        if let Some(shown) = self.mapping.namespaces.shown_uid(self.splice.bytes(found)) {
            self.splice.replace(found, shown);
        }
    }

    /// All fields with this number, which contain names of namespaces.
    pub(super) fn namespaces(&mut self, range: &Range<usize>, number: u32) -> Result<(), Unreadable> {
        let mut names = self.splice.fields(range.clone());
        while let Some(name) = names.next(|other| other == number)? {
            self.namespace(&name);
        }
        Ok(())
    }

    /// A user or group.
    pub(super) fn identity(&mut self, found: &Found) {
        match self.seen(found) {
            Seen::Own(name) => self.splice.replace(found, name.into()),
            Seen::Foreign => self.foreign(found),
        }
    }

    /// A user or group in a list, from which those of others are removed.
    pub(super) fn identity_element(&mut self, found: &Found) -> Outcome {
        match self.seen(found) {
            Seen::Own(name) => {
                self.splice.replace(found, name.into());
                Outcome::Keep
            }
            Seen::Foreign => Outcome::Remove,
        }
    }

    /// The name of a ClusterRole.
    pub(super) fn role(&mut self, found: &Found) {
        if found.is_empty() {
            return;
        }
        match self.mapping.seen_role(self.splice.bytes(found)) {
            SeenRole::Own(name) => self.splice.replace(found, name),
            SeenRole::Shared => {}
            SeenRole::Foreign => self.foreign(found),
        }
    }

    /// The name of a cluster-scoped custom object.
    pub(super) fn custom_object(&mut self, found: &Found) {
        match self.mapping.seen_object(self.splice.bytes(found)) {
            Some(name) => self.splice.replace(found, name),
            None => self.foreign(found),
        }
    }

    /// Free text that can contain names.
    pub(super) fn message(&mut self, found: &Found) {
        let text = String::from_utf8_lossy(self.splice.bytes(found));
        if let Some(readable) = self.mapping.readable(&text) {
            self.splice.replace(found, readable.into());
        }
    }

    /// The field with the JSON key `key`, if it is not empty.
    pub(super) fn field_at(
        &self,
        message: &Message,
        range: &Range<usize>,
        key: &str,
    ) -> Result<Option<Found>, Unreadable> {
        let Some(number) = message.number(key) else { return Ok(None) };
        Ok(self.splice.only(range, number)?.filter(|found| !found.is_empty()))
    }

    /// The text of the field with the JSON key `key`. Empty if there is none.
    pub(super) fn text(&self, message: &Message, range: &Range<usize>, key: &str) -> Result<&'b [u8], Unreadable> {
        Ok(self.splice.text(range, message.number(key))?)
    }

    fn seen(&self, found: &Found) -> Seen {
        self.mapping.seen(&String::from_utf8_lossy(self.splice.bytes(found)))
    }

    fn foreign(&mut self, found: &Found) {
        let host = self.splice.bytes(found);
        self.splice.replace(found, [FOREIGN_PREFIX.as_bytes(), host].concat().into());
    }
}
