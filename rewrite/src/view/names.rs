//! Names in JSON, as the virtual cluster sees them.

use crate::Mapping;
use crate::json::{Cursor, Edits, Malformed, unquoted};
use crate::mapping::identity::Seen;
use crate::mapping::role::SeenRole;
use crate::mapping::{FOREIGN_PREFIX, Shown};

/// Shows the name that is the next value. A value that is not a string stays unchanged.
#[derive(Clone, Copy)]
pub(super) struct Names<'v> {
    pub(super) mapping: &'v Mapping,
}

// === impl Names ===

impl Names<'_> {
    /// The name of a namespace.
    pub(super) fn namespace(self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let text = cursor.string()?;
        match self.mapping.shown(&text.bytes()) {
            Shown::As(name) => edits.rename(text.range(), text.raw, &name),
            Shown::Unchanged => {}
            Shown::Foreign => edits.insert(text.start, FOREIGN_PREFIX),
        }
        Ok(())
    }

    /// The uid of a Namespace.
    pub(super) fn uid(self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let text = cursor.string()?;
        if let Some(shown) = self.mapping.namespaces.shown_uid(&text.bytes()) {
            edits.replace(text.range(), shown);
        }
        Ok(())
    }

    /// A user or group. Returns whether it belongs to the virtual cluster.
    pub(super) fn identity(self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<bool, Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip().map(|()| true);
        }
        let text = cursor.string()?;
        if text.raw.is_empty() {
            return Ok(true);
        }
        match self.mapping.seen(&text.decode()) {
            Seen::Own(name) => {
                edits.replace(text.range(), unquoted(&name));
                Ok(true)
            }
            Seen::Foreign => {
                edits.insert(text.start, FOREIGN_PREFIX);
                Ok(false)
            }
        }
    }

    /// The name of a ClusterRole. Returns its owner.
    pub(super) fn role(self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Option<SeenRole>, Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip().map(|()| None);
        }
        let text = cursor.string()?;
        if text.raw.is_empty() {
            return Ok(None);
        }
        let seen = self.mapping.seen_role(&text.bytes());
        match &seen {
            SeenRole::Own(name) => edits.replace(text.range(), unquoted(&String::from_utf8_lossy(name))),
            SeenRole::Shared => {}
            SeenRole::Foreign => edits.insert(text.start, FOREIGN_PREFIX),
        }
        Ok(Some(seen))
    }

    /// The name of a cluster-scoped custom object. Returns its owner. Names of other clusters get a prefix.
    pub(super) fn custom_object(
        self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Option<SeenRole>, Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip().map(|()| None);
        }
        let text = cursor.string()?;
        if text.raw.is_empty() {
            return Ok(None);
        }
        Ok(Some(if let Some(name) = self.mapping.seen_object(&text.bytes()) {
            edits.rename(text.range(), text.raw, &name);
            SeenRole::Own(name)
        } else {
            edits.insert(text.start, FOREIGN_PREFIX);
            SeenRole::Foreign
        }))
    }

    /// A name that may be that of the requested object.
    pub(super) fn requested_object(self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let text = cursor.string()?;
        if let Some((host, name)) = self.mapping.objects.requested()
            && *text.bytes() == host[..]
        {
            edits.rename(text.range(), text.raw, name);
        }
        Ok(())
    }

    /// Free text that can contain names.
    #[inline]
    pub(super) fn message(self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        self.mapping.messages().edit(&cursor.string()?, edits);
        Ok(())
    }
}
