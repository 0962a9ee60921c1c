//! ClusterRoles: which are visible, and their parked fields.
//!
//! Those of the virtual cluster have its label and its prefix. Those that every cluster has are shown unchanged.

use std::borrow::Cow;

use bytes::Bytes;
use kube_wire::selector::LabelSelector;

use super::namespace::ITSELF;
use super::object::{Reader, unquoted};
use super::{Filter, Verdict};
use crate::json::{Cursor, Edits, Fate, Malformed, Text};
use crate::mapping::FOREIGN_PREFIX;
use crate::mapping::role::SeenRole;
use crate::name::{CLUSTER_LABEL, HIDDEN_PREFIX, LAST_APPLIED_ANNOTATION};
use crate::parked::{AGGREGATION_ANNOTATION, added, unparked, unparked_annotation};

/// The parts of a ClusterRole. Only its end shows whether it is visible.
#[derive(Default)]
pub(super) struct Role {
    seen: Option<SeenRole>,
    is_labelled: bool,
    /// Which requirements of the selector, if any, the visible labels meet.
    held: Held,
    /// The `aggregationRule` that was parked.
    aggregation: Option<String>,
    /// The position to insert it.
    behind_rules: Option<usize>,
}

/// Which requirements of a selector the labels meet that have been read so far. Clients choose the number of
/// requirements and of labels, so no label is kept.
#[derive(Default)]
struct Held(Vec<Option<bool>>);

/// Whether the text is one value: the text of an annotation must be checked before it is spliced in.
fn is_json(text: &[u8]) -> bool {
    let mut cursor = Cursor::new(text, 0, 0);
    cursor.skip().and_then(|()| cursor.finish()).is_ok()
}

/// Replaces a parked key by its original key. The parked key begins at `from` in the decoded text.
fn unpark(key: Text<'_>, decoded: &str, from: usize, edits: &mut Edits) {
    let Some(added) = added(&decoded[from..]) else { return };
    let added = from + added.start..from + added.end;
    if decoded.as_bytes() == key.raw {
        edits.delete(key.start + added.start..key.start + added.end);
    } else {
        edits.replace(key.range(), unquoted(&[&decoded[..added.start], &decoded[added.end..]].concat()));
    }
}

// === impl Role ===

impl Role {
    /// Whether the role is visible.
    pub(super) fn verdict(&self, selector: Option<&LabelSelector>) -> Verdict {
        let is_visible = match self.seen {
            Some(SeenRole::Own(_)) => self.is_labelled,
            Some(SeenRole::Shared) => true,
            Some(SeenRole::Foreign) | None => false,
        };
        match selector {
            _ if !is_visible => Verdict::Foreign,
            Some(selector) if !self.held.all_of(selector) => Verdict::Unselected,
            _ => Verdict::Shown,
        }
    }

    /// Records the name.
    pub(super) fn see(&mut self, seen: Option<SeenRole>) {
        // One foreign name among several (duplicate keys) is enough.
        if self.seen != Some(SeenRole::Foreign) {
            self.seen = seen;
        }
    }

    /// Records the label that assigns it to the virtual cluster.
    pub(super) fn note_label(&mut self) {
        self.is_labelled = true;
    }

    /// Restores the parked fields.
    pub(super) fn conclude(self, edits: &mut Edits) {
        if let (Some(aggregation), Some(at)) = (self.aggregation, self.behind_rules)
            && is_json(aggregation.as_bytes())
        {
            edits.insert(at, format!(",\"aggregationRule\":{aggregation}"));
        }
    }
}

// === impl Held ===

impl Held {
    /// Records a label. Of duplicate keys, the last one counts.
    fn note(&mut self, selector: &LabelSelector, key: &str, value: &str) {
        for position in selector.positions_of(key) {
            self.0.resize(selector.requirements().len(), None);
            self.0[position] = Some(selector.requirements()[position].test().holds(Some(value)));
        }
    }

    /// Whether the selector matches if there are no more labels.
    fn all_of(&self, selector: &LabelSelector) -> bool {
        let requirements = selector.requirements().iter().enumerate();
        let mut held = requirements.map(|(position, requirement)| {
            self.0.get(position).copied().flatten().unwrap_or_else(|| requirement.test().holds(None))
        });
        held.all(|holds| holds)
    }
}

// === impl Reader ===

impl Reader<'_> {
    /// The name of a ClusterRole anywhere in an object.
    pub(super) fn role(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Option<SeenRole>, Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip().map(|()| None);
        }
        let text = cursor.string()?;
        if text.raw.is_empty() {
            return Ok(None);
        }
        let seen = self.view.mapping.seen_role(&text.bytes());
        match &seen {
            SeenRole::Own(name) => edits.replace(text.range(), unquoted(&String::from_utf8_lossy(name))),
            SeenRole::Shared => {}
            SeenRole::Foreign => edits.insert(text.start, FOREIGN_PREFIX),
        }
        Ok(Some(seen))
    }

    /// `metadata.name` of a ClusterRole.
    pub(super) fn role_name(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        let seen = self.role(cursor, edits)?;
        self.role.see(seen);
        Ok(())
    }

    /// `roleRef` of a binding.
    pub(super) fn role_ref(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        let is_mapped = cursor.look_up("kind")?.is_some_and(|kind| kind.is("ClusterRole"));
        self.members(cursor, edits, |reader, key, cursor, edits| match key {
            "name" if is_mapped => reader.role(cursor, edits).map(drop),
            _ => cursor.skip(),
        })
    }

    /// `metadata.labels` of a ClusterRole.
    pub(super) fn role_labels(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        self.renamed_keys(cursor, edits, |reader, key, cursor, edits| {
            let decoded = key.decode();
            if decoded.starts_with(HIDDEN_PREFIX) {
                let is_label = decoded == CLUSTER_LABEL && cursor.peek()? == b'"';
                if is_label && cursor.string()?.is(reader.view.mapping.cluster().as_str()) {
                    reader.role.is_labelled = true;
                } else if !is_label {
                    cursor.skip()?;
                }
                return Ok(Fate::Remove);
            }
            unpark(key, &decoded, 0, edits);
            match &reader.view.selecting {
                Some(selector) if cursor.peek()? == b'"' => {
                    let shown = unparked(&decoded).unwrap_or(Cow::Borrowed(&*decoded));
                    reader.role.held.note(selector, &shown, &cursor.string()?.decode());
                }
                _ => cursor.skip()?,
            }
            Ok(Fate::Keep)
        })
    }

    /// `metadata.annotations` of a ClusterRole.
    pub(super) fn role_annotations(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        self.renamed_keys(cursor, edits, |reader, key, cursor, edits| {
            let decoded = key.decode();
            if decoded == AGGREGATION_ANNOTATION && cursor.peek()? == b'"' {
                reader.role.aggregation = Some(cursor.string()?.decode().into_owned());
                return Ok(Fate::Remove);
            }
            if decoded == LAST_APPLIED_ANNOTATION
                && let Some(last_applied) = &mut reader.last_applied
            {
                last_applied.note(cursor)?;
                return Ok(Fate::Keep);
            }
            if let Some(shown) = unparked_annotation(&decoded) {
                edits.replace(key.range(), Bytes::from_static(shown.as_bytes()));
            }
            cursor.skip()?;
            Ok(if decoded.starts_with(HIDDEN_PREFIX) { Fate::Remove } else { Fate::Keep })
        })
    }

    /// `f:labels` or `f:annotations` of a manager of a ClusterRole.
    pub(super) fn owned_role_keys(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        self.renamed_keys(cursor, edits, |_, key, cursor, edits| {
            cursor.skip()?;
            let decoded = key.decode();
            let Some(field) = decoded.strip_prefix("f:") else { return Ok(Fate::Keep) };
            if field.starts_with(HIDDEN_PREFIX) {
                return Ok(Fate::Remove);
            }
            unpark(key, &decoded, "f:".len(), edits);
            Ok(Fate::Keep)
        })
    }

    /// `rules` of a ClusterRole have ended.
    pub(super) fn rules_end(&mut self, cursor: &Cursor<'_>) {
        self.role.behind_rules = Some(cursor.at());
    }

    /// How the client sees the role, if the filter uses it.
    pub(super) fn role_verdict(&self) -> Option<Verdict> {
        (self.filter == Filter::ByRole).then(|| self.role.verdict(self.view.selecting.as_deref()))
    }

    /// Visits the keys of a map, and removes the map if only the entry for itself is left.
    fn renamed_keys<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        edits: &mut Edits,
        mut visit: impl FnMut(&mut Self, Text<'a>, &mut Cursor<'a>, &mut Edits) -> Result<Fate, Malformed>,
    ) -> Result<Fate, Malformed> {
        if cursor.peek()? != b'{' {
            cursor.skip()?;
            return Ok(Fate::Keep);
        }
        let mut itself = 0;
        let extent = cursor.object(edits, |cursor, edits, key| {
            itself += usize::from(key.is(ITSELF));
            visit(self, key, cursor, edits)
        })?;
        Ok(if extent.removed > 0 && extent.kept == itself { Fate::Remove } else { Fate::Keep })
    }
}
