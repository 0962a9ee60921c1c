//! The values of a JSON body.

use bytes::Bytes;

use super::confinement::Confinement;
use super::hosts::Hosts;
use super::refusal::{Reason, Refusal};
use super::report::Report;
use super::settings::Settings;
use super::strings::{non_empty_string, quotes_of};
use crate::json::{Cursor, Edits, Outcome, quoted};

/// Maps the value that is the next one.
pub(super) struct Fields<'r> {
    pub(super) settings: &'r Settings,
    pub(super) report: Report,
    pub(super) hosts: Hosts,
    pub(super) confinement: Confinement,
    /// Whether this is inside of data that the StatefulSet controller reads.
    pub(super) in_revision: bool,
}

// === impl Fields ===

impl<'r> Fields<'r> {
    pub(super) fn new(settings: &'r Settings) -> Self {
        Self {
            settings,
            report: Report::default(),
            hosts: Hosts::default(),
            confinement: Confinement::default(),
            in_revision: false,
        }
    }

    /// `metadata.namespace`.
    pub(super) fn own_namespace(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        if let Some(text) = non_empty_string(cursor)? {
            edits.replace(text.range(), self.hosts.own(&self.settings.names, &text.bytes())?);
        }
        Ok(())
    }

    /// The name of a namespace. An empty one means all, none or that of the object, and stays unchanged.
    pub(super) fn namespace(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let Some(text) = non_empty_string(cursor)? else { return Ok(()) };
        let host = self.hosts.named(&self.settings.names, &mut self.report, &text.bytes())?;
        edits.replace(text.range(), host);
        Ok(())
    }

    /// The uid of a Namespace.
    pub(super) fn uid(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        if let Some(text) = non_empty_string(cursor)?
            && let Some(host) = self.settings.names.mapping.namespaces.host_uid(&text.bytes())
        {
            edits.replace(text.range(), host);
        }
        Ok(())
    }

    /// A user or group.
    pub(super) fn identity(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let Some(text) = non_empty_string(cursor)? else { return Ok(()) };
        let host = self.settings.names.identity(&text.decode())?;
        edits.replace(quotes_of(&text), Bytes::from(quoted(&host)));
        Ok(())
    }

    /// The name of a ClusterRole. An empty one stays unchanged.
    pub(super) fn role(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let Some(text) = non_empty_string(cursor)? else { return Ok(()) };
        let host = quoted(&self.settings.names.role(&text.decode())?);
        edits.replace(quotes_of(&text), host.into());
        Ok(())
    }

    /// The name of a cluster-scoped custom object. An empty one stays unchanged.
    pub(super) fn custom_object(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let Some(text) = non_empty_string(cursor)? else { return Ok(()) };
        let host = quoted(&self.settings.names.custom_object(&text.decode())?);
        edits.replace(quotes_of(&text), host.into());
        Ok(())
    }

    /// The name of a node, which is the same on the host.
    pub(super) fn node(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Refusal> {
        if let Some(text) = non_empty_string(cursor)? {
            self.report.nodes.push(text.decode().into_owned());
        }
        Ok(())
    }

    /// Visits the members of the next value if it is an object, and skips it otherwise. Keys in `once` must not be repeated,
    /// so that Kubernetes reads the same value as the earlier lookup.
    pub(super) fn members<'a>(
        &mut self,
        once: &[&str],
        cursor: &mut Cursor<'a>,
        edits: &mut Edits,
        mut visit: impl FnMut(&mut Self, &[u8], &mut Cursor<'a>, &mut Edits) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if cursor.peek()? != b'{' {
            return Ok(cursor.skip()?);
        }
        let mut seen = 0_u32;
        cursor.object(edits, |cursor, edits, key| {
            if self.in_revision
                && let Some(expected) = once.iter().find(|once| !key.is(once) && key.folds_to(once))
            {
                return Err(Reason::Spelling { expected: (*expected).to_owned() }.into());
            }
            // Not decoded to text, which would check its UTF-8: all keys that matter are ASCII.
            let key = key.bytes();
            if let Some(number) = once.iter().position(|once| *key == *once.as_bytes()) {
                if seen & 1 << number != 0 {
                    return Err(Refusal::from(Reason::Duplicate));
                }
                seen |= 1 << number;
            }
            visit(self, &key, cursor, edits)?;
            Ok(Outcome::Keep)
        })?;
        Ok(())
    }
}
