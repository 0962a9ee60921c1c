//! The fields of a JSON object that determine whether it is visible.

use super::decision::Decision;
use super::filter::Filter;
use super::names::Names;
use super::reference::reference;
use crate::json::{Cursor, Edits, Malformed};

/// Reads these fields, and shows the names in them.
pub(super) struct OwnerFields<'d, 'v> {
    pub(super) decision: &'d mut Decision<'v>,
    pub(super) names: Names<'v>,
}

// === impl OwnerFields ===

impl OwnerFields<'_, '_> {
    /// The name of a namespace that determines the owner.
    #[inline]
    pub(super) fn namespace(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let text = cursor.string()?;
        if let Some(name) = self.decision.by_namespace(&text.bytes()) {
            edits.rename(text.range(), text.raw, &name);
        }
        Ok(())
    }

    /// The name of a node that determines the owner.
    pub(super) fn node(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if self.decision.filter() != Filter::ByNode || cursor.peek()? != b'"' {
            return cursor.skip();
        }
        self.decision.by_node(&cursor.string()?.bytes());
        Ok(())
    }

    /// `claimRef`.
    pub(super) fn claim(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if self.decision.filter() != Filter::ByClaim {
            return reference(self.names, cursor, edits);
        }
        cursor.members(edits, |key, cursor, edits| match key {
            b"namespace" => self.namespace(cursor, edits),
            _ => cursor.skip(),
        })
    }

    /// `parentRef` of an IPAddress.
    pub(super) fn parent(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if self.decision.filter() != Filter::ByParent {
            return reference(self.names, cursor, edits);
        }
        cursor.members(edits, |key, cursor, edits| match key {
            b"namespace" => self.namespace(cursor, edits),
            b"name" => self.name(cursor),
            _ => cursor.skip(),
        })
    }

    /// The annotation that shows whether Kubernetes maintains the object.
    pub(super) fn autoupdate_spec(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        self.decision.by_autoupdate(&cursor.string()?.bytes());
        Ok(())
    }

    /// `metadata.name` of an object that can be projected by its name.
    pub(super) fn name(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if !self.decision.projects() || cursor.peek()? != b'"' {
            return cursor.skip();
        }
        self.decision.note_name(&cursor.string()?.bytes());
        Ok(())
    }

    /// The object of an Event.
    pub(super) fn event_object(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if self.decision.projects_events()
            && cursor.look_up("kind")?.is_some_and(|kind| kind.is("Node"))
            && let Some(name) = cursor.look_up("name")?
        {
            self.decision.note_event_about(&name.bytes());
        }
        reference(self.names, cursor, edits)
    }
}
