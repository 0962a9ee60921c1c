//! The fields of a body.

use std::ops::Range;

use super::super::hosts::Hosts;
use super::super::refusal::Refusal;
use super::super::report::Report;
use super::super::settings::Settings;
use crate::json::{Fault as _, Step};
use crate::protobuf::{EachError, Found, Message, Splice};

/// Maps the fields of one body.
pub(super) struct Fields<'r, 'b> {
    pub(super) settings: &'r Settings,
    pub(super) splice: Splice<'b>,
    pub(super) report: Report,
    pub(super) hosts: Hosts,
}

// === impl Fields ===

impl<'b> Fields<'_, 'b> {
    /// `metadata.namespace`.
    pub(super) fn own_namespace(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            let host = self.hosts.own(&self.settings.names, self.splice.bytes(found))?;
            self.splice.replace(found, host);
        }
        Ok(())
    }

    /// The name of a namespace. An empty one means all, none or that of the object, and stays unchanged.
    pub(super) fn namespace(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            let host = self.hosts.named(&self.settings.names, &mut self.report, self.splice.bytes(found))?;
            self.splice.replace(found, host);
        }
        Ok(())
    }

    /// The uid of a Namespace.
    pub(super) fn uid(&mut self, found: &Found) {
        if let Some(host) = self.settings.names.mapping.namespaces.host_uid(self.splice.bytes(found)) {
            self.splice.replace(found, host);
        }
    }

    /// A user or group.
    pub(super) fn identity(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            // Go does not change invalid UTF-8. No user or group has such a name.
            let host = self.settings.names.identity(&String::from_utf8_lossy(self.splice.bytes(found)))?;
            self.splice.replace(found, host.into());
        }
        Ok(())
    }

    /// The name of a ClusterRole. An empty one stays unchanged.
    pub(super) fn role(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            let host = self.settings.names.role(&String::from_utf8_lossy(self.splice.bytes(found)))?;
            self.splice.replace(found, host.into());
        }
        Ok(())
    }

    /// The name of a cluster-scoped custom object. An empty one stays unchanged.
    pub(super) fn custom_object(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            let host = self.settings.names.custom_object(&self.text_of(found))?;
            self.splice.replace(found, host.into());
        }
        Ok(())
    }

    /// The name of a node, which is the same on the host.
    pub(super) fn node(&mut self, found: &Found) {
        if !found.is_empty() {
            self.report.nodes.push(self.text_of(found));
        }
    }

    /// The namespace of a review. An empty one stays unchanged.
    pub(super) fn review_namespace(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            let host = self.settings.names.review_namespace(self.splice.bytes(found))?;
            self.splice.replace(found, host);
        }
        Ok(())
    }

    pub(super) fn text_of(&self, found: &Found) -> String {
        String::from_utf8_lossy(self.splice.bytes(found)).into_owned()
    }

    /// The only field with this number.
    pub(super) fn find(&self, range: Range<usize>, number: u32) -> Result<Option<Found>, Refusal> {
        let [found] = self.splice.each(&range, [Some(number)])?;
        Ok(found)
    }

    /// The only fields with these keys of a message, in one pass.
    pub(super) fn each<const N: usize>(
        &self,
        message: &Message,
        range: &Range<usize>,
        keys: [&'static str; N],
    ) -> Result<[Option<Found>; N], Refusal> {
        self.splice.each(range, keys.map(|key| message.number(key))).map_err(|error| match error {
            EachError::Wire(_) => error.into(),
            EachError::Repeated(position) => Refusal::from(error).within(Step::Key(keys[position])),
        })
    }

    /// The content of a field, for comparison. Empty if there is none, which is equivalent.
    pub(super) fn content(&self, found: Option<&Found>) -> &'b [u8] {
        found.map_or(b"", |found| self.splice.bytes(found))
    }

    /// The bytes of the only field with this number, for comparison.
    pub(super) fn look_up(&self, range: &Range<usize>, number: Option<u32>) -> Result<&'b [u8], Refusal> {
        let Some(number) = number else { return Ok(b"") };
        Ok(self.find(range.clone(), number)?.map_or(b"", |found| self.splice.bytes(&found)))
    }

    /// Enters the message in a field.
    pub(super) fn enter(
        &mut self,
        found: &Found,
        change: impl FnOnce(&mut Self, Range<usize>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let outer = self.splice.enter(found);
        change(self, found.inside.clone())?;
        self.splice.leave(found, outer);
        Ok(())
    }
}
