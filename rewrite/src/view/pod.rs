//! Removes the guard from pod specifications, and from their managed fields.
//!
//! Managed fields precede the specification. So their entries for a node selector are pending until it is known whether
//! anything of the node selector is left.

use std::ops::Range;

use super::object::Reader;
use crate::Program;
use crate::guard::Toleration;
use crate::json::{Cursor, Cut, Edits, Fate, Malformed};

/// Entries of managed fields for fields that may be hidden.
#[derive(Default)]
pub(super) struct Owned {
    node_selectors: OwnedFields,
    tolerations: OwnedFields,
    /// What is known about the fields themselves so far.
    rest: Rests,
}

/// The remains of the guarded fields in the pod specifications of an object.
#[derive(Clone, Copy, Default)]
pub(super) struct Rests {
    pub(super) node_selector: Rest,
    pub(super) tolerations: Rest,
}

/// The remains of a field without the guard. If there are several pod specifications, the smallest.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rest {
    /// Elements that a client may have written, or the field did not contain the guard.
    #[default]
    Something,
    /// Only what the host adds to every pod, if it is a pod.
    Admitted,
    /// Nothing, so the field is removed too.
    Nothing,
}

/// The elements of a guarded field so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    kept: usize,
    /// The kept elements that the host adds to every pod.
    admitted: usize,
    removed: usize,
}

/// The fields of all managers. Most pods have one such manager, and a list of pods should not allocate for each of
/// them.
#[derive(Default)]
struct OwnedFields {
    first: Option<OwnedField>,
    more: Vec<OwnedField>,
}

/// One manager's `f:nodeSelector` or `f:tolerations`.
struct OwnedField {
    /// If the whole field is hidden.
    cut: Cut,
    /// The ranges to cut otherwise.
    parts: Vec<Range<usize>>,
}

// === impl Owned ===

impl Owned {
    /// What is known about the fields so far.
    pub(super) fn rest(&self) -> Rests {
        self.rest
    }

    /// For managed fields that are read when this is known.
    pub(super) fn of(rest: Rests) -> Self {
        Self { rest, ..Self::default() }
    }

    pub(super) fn conclude(mut self, program: &Program, edits: &mut Edits) {
        // Nobody owns what admission adds to a pod, so an owner of the field owns it because of the guard.
        let hidden_from = if program.is_of_pods() { Rest::Admitted } else { Rest::Nothing };
        let selectors_are_gone = self.rest.node_selector >= hidden_from;
        let tolerations_are_gone = self.rest.tolerations >= hidden_from;
        if selectors_are_gone && tolerations_are_gone {
            self.join_neighbours();
        }
        for (fields, is_gone) in [(self.node_selectors, selectors_are_gone), (self.tolerations, tolerations_are_gone)] {
            for field in fields.first.into_iter().chain(fields.more) {
                if is_gone {
                    edits.delete(field.cut.whole);
                } else {
                    field.parts.into_iter().for_each(|part| edits.delete(part));
                }
            }
        }
    }

    /// Joins two cuts that share the comma between them, because nothing is before the first.
    fn join_neighbours(&mut self) {
        for selector in self.node_selectors.iter_mut() {
            for toleration in self.tolerations.iter_mut() {
                let (selector, toleration) = (&mut selector.cut, &mut toleration.cut);
                let (first, second) = if selector.whole.start < toleration.whole.start {
                    (selector, toleration)
                } else {
                    (toleration, selector)
                };
                if second.whole.start < first.whole.end {
                    first.whole.end = second.next;
                    second.whole = second.next..second.next;
                }
            }
        }
    }
}

// === impl Tally ===

impl Tally {
    /// Counts an element, which is kept if it is `Keep`.
    pub(super) fn count(&mut self, fate: Fate) -> Fate {
        match fate {
            Fate::Keep => self.kept += 1,
            Fate::Remove => self.removed += 1,
        }
        fate
    }

    /// Counts a toleration, or another value instead of one.
    pub(super) fn toleration(&mut self, reader: &Reader<'_>, found: Option<&Toleration>) -> Fate {
        let hidden = found.is_some_and(|found| reader.view.guard.toleration(found).is_some());
        if !hidden && found.is_some_and(Toleration::is_admitted) {
            self.admitted += 1;
        }
        self.count(if hidden { Fate::Remove } else { Fate::Keep })
    }

    /// What happens to the field itself.
    fn field(self) -> Fate {
        if self.rest() == Rest::Nothing { Fate::Remove } else { Fate::Keep }
    }

    pub(super) fn rest(self) -> Rest {
        match self {
            Self { removed: 0, .. } => Rest::Something,
            Self { kept: 0, .. } => Rest::Nothing,
            Self { kept, admitted, .. } if kept == admitted => Rest::Admitted,
            Self { .. } => Rest::Something,
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
    /// `nodeSelector`: removes the guarded keys with any value (it can be older than a change of the guard).
    pub(super) fn node_selector(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        if cursor.peek()? != b'{' {
            return cursor.skip().map(|()| Fate::Keep);
        }
        let mut tally = Tally::default();
        cursor.object(edits, |cursor, _, key| {
            cursor.skip()?;
            Ok::<_, Malformed>(tally.count(if self.view.guard.has_key(&key) { Fate::Remove } else { Fate::Keep }))
        })?;
        self.owned.rest.node_selector = self.owned.rest.node_selector.max(tally.rest());
        Ok(tally.field())
    }

    /// `tolerations`: removes those of the guard.
    pub(super) fn tolerations(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Malformed> {
        if cursor.peek()? != b'[' || self.view.guard.tolerations().is_empty() {
            return cursor.skip().map(|()| Fate::Keep);
        }
        let mut tally = Tally::default();
        cursor.array(edits, |cursor, _, _| {
            let found = Toleration::read(cursor)?;
            Ok::<_, Malformed>(tally.toleration(self, found.as_ref()))
        })?;
        self.owned.rest.tolerations = self.owned.rest.tolerations.max(tally.rest());
        Ok(tally.field())
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
        let cut = Cut::around(cursor, start);
        self.owned.node_selectors.push(OwnedField { cut, parts });
        Ok(())
    }

    /// `f:tolerations`, which is one atomic field.
    pub(super) fn owned_tolerations(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let start = cursor.member();
        cursor.skip()?;
        let cut = Cut::around(cursor, start);
        self.owned.tolerations.push(OwnedField { cut, parts: Vec::new() });
        Ok(())
    }
}
