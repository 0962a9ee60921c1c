//! Taking the guard out of pod specifications, and out of what managed fields say of them.
//!
//! Managed fields come before the specification they are about. So what they say of a node selector waits until it is
//! known whether anything of the node selector is left.

use std::ops::Range;

use super::object::Reader;
use crate::json::{Cursor, Edits, Fate, Malformed};

/// What managed fields say of fields that may be hidden.
#[derive(Default)]
pub(super) struct Owned {
    node_selectors: OwnedFields,
    tolerations: OwnedFields,
    /// Whether a pod specification was seen with this field, and nothing was left of it.
    node_selector_is_gone: bool,
    tolerations_are_gone: bool,
}

/// Which fields of the pod specifications of an object were hidden as a whole.
#[derive(Clone, Copy, Default)]
pub(super) struct Gone {
    pub(super) node_selector: bool,
    pub(super) tolerations: bool,
}

/// Those of all managers. Most pods have one manager who says so, and a list of pods should allocate nothing for each.
#[derive(Default)]
struct OwnedFields {
    first: Option<OwnedField>,
    more: Vec<OwnedField>,
}

/// One manager's `f:nodeSelector` or `f:tolerations`.
struct OwnedField {
    /// To be cut if the whole field is hidden.
    whole: Range<usize>,
    /// Where the field behind it begins, if there is one.
    next: usize,
    /// To be cut otherwise.
    parts: Vec<Range<usize>>,
}

// === impl Owned ===

impl Owned {
    /// What is known of fields of which nothing is left.
    pub(super) fn gone(&self) -> Gone {
        Gone { node_selector: self.node_selector_is_gone, tolerations: self.tolerations_are_gone }
    }

    /// For managed fields that are read when that is known.
    pub(super) fn of(gone: Gone) -> Self {
        Self { node_selector_is_gone: gone.node_selector, tolerations_are_gone: gone.tolerations, ..Self::default() }
    }

    pub(super) fn conclude(mut self, edits: &mut Edits) {
        if self.node_selector_is_gone && self.tolerations_are_gone {
            self.join_neighbours();
        }
        for (fields, is_gone) in
            [(self.node_selectors, self.node_selector_is_gone), (self.tolerations, self.tolerations_are_gone)]
        {
            for field in fields.first.into_iter().chain(fields.more) {
                if is_gone {
                    edits.delete(field.whole);
                } else {
                    field.parts.into_iter().for_each(|part| edits.delete(part));
                }
            }
        }
    }

    /// Makes one cut of two that share the comma between them, because nothing stands before the first.
    fn join_neighbours(&mut self) {
        for selector in self.node_selectors.iter_mut() {
            for toleration in self.tolerations.iter_mut() {
                let (first, second) = if selector.whole.start < toleration.whole.start {
                    (&mut *selector, toleration)
                } else {
                    (toleration, &mut *selector)
                };
                if second.whole.start < first.whole.end {
                    first.whole.end = second.next;
                    second.whole = second.next..second.next;
                }
            }
        }
    }
}

// === impl OwnedFields ===

impl OwnedFields {
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut OwnedField> {
        self.first.iter_mut().chain(&mut self.more)
    }

    fn push(&mut self, field: OwnedField) {
        if self.first.is_none() {
            self.first = Some(field);
        } else {
            self.more.push(field);
        }
    }
}

// === impl Reader ===

impl Reader<'_> {
    /// `nodeSelector`: the guarded keys go, whatever their value is (it may be from before a change of the guard).
    pub(super) fn node_selector(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        if cursor.peek()? != b'{' {
            return cursor.skip().map(|()| Fate::Keep);
        }
        let extent = cursor.object(edits, |cursor, _, key| {
            cursor.skip()?;
            Ok::<_, Malformed>(if self.view.guard.has_key(&key) { Fate::Remove } else { Fate::Keep })
        })?;
        self.owned.node_selector_is_gone |= extent.removed > 0 && extent.kept == 0;
        Ok(if self.owned.node_selector_is_gone { Fate::Remove } else { Fate::Keep })
    }

    /// `tolerations`: those of the guard go.
    pub(super) fn tolerations(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        if cursor.peek()? != b'[' || self.view.guard.tolerations().is_empty() {
            return cursor.skip().map(|()| Fate::Keep);
        }
        let extent = cursor.array(edits, |cursor, _, _| {
            let hidden = self.view.guard.toleration_at(cursor)?.is_some();
            Ok::<_, Malformed>(if hidden { Fate::Remove } else { Fate::Keep })
        })?;
        self.owned.tolerations_are_gone |= extent.removed > 0 && extent.kept == 0;
        Ok(if self.owned.tolerations_are_gone { Fate::Remove } else { Fate::Keep })
    }

    /// `f:nodeSelector`. It is one atomic field, `{}` (`+mapType=atomic` in core/v1); what was
    /// written before it was marked so has a member for each key.
    pub(super) fn owned_node_selector(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let start = cursor.member();
        let mut parts = Vec::new();
        if cursor.peek()? == b'{' {
            let mut cuts = Edits::new();
            cursor.object(&mut cuts, |cursor, _, key| {
                cursor.skip()?;
                let key = key.decode();
                let hidden = key
                    .strip_prefix("f:")
                    .is_some_and(|key| self.view.guard.entries().iter().any(|entry| entry.key == key));
                Ok::<_, Malformed>(if hidden { Fate::Remove } else { Fate::Keep })
            })?;
            parts = cuts.into_ranges().collect();
        } else {
            cursor.skip()?;
        }
        let (whole, next) = (cursor.cut_around(start, cursor.at()), cursor.next_member(cursor.at()));
        self.owned.node_selectors.push(OwnedField { whole, next, parts });
        Ok(())
    }

    /// `f:tolerations`, which is one atomic field.
    pub(super) fn owned_tolerations(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let start = cursor.member();
        cursor.skip()?;
        let (whole, next) = (cursor.cut_around(start, cursor.at()), cursor.next_member(cursor.at()));
        self.owned.tolerations.push(OwnedField { whole, next, parts: Vec::new() });
        Ok(())
    }
}
