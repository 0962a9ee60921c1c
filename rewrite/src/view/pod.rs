//! Removes the guard from pod specifications, and from their managed fields.
//!
//! Managed fields precede the specification. So their entries for a node selector are pending until it is known whether
//! anything of the node selector is left.

use std::ops::Range;

use super::tally::{Remainder, Remainders, Tally};
use crate::guard::Toleration;
use crate::json::{Cursor, Cut, Edits, Malformed, Outcome};
use crate::{Guard, Program};

/// The guarded fields of an object, and the entries for them in its managed fields.
#[derive(Default)]
pub(super) struct PodFields {
    node_selectors: OwnedFields,
    tolerations: OwnedFields,
    /// What is known about the fields themselves so far.
    remainder: Remainders,
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

// === impl PodFields ===

impl PodFields {
    /// What is known about the fields so far.
    pub(super) fn remainder(&self) -> Remainders {
        self.remainder
    }

    /// For managed fields that are read when this is known.
    pub(super) fn of(remainder: Remainders) -> Self {
        Self { remainder, ..Self::default() }
    }

    /// `nodeSelector`: removes the guarded keys with any value (it can be older than a change of the guard).
    pub(super) fn node_selector(
        &mut self,
        guard: &Guard,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Outcome, Malformed> {
        if cursor.peek()? != b'{' {
            return cursor.skip().map(|()| Outcome::Keep);
        }
        let mut tally = Tally::default();
        cursor.object(edits, |cursor, _, key| {
            cursor.skip()?;
            Ok::<_, Malformed>(tally.count(if guard.has_key(&key) { Outcome::Remove } else { Outcome::Keep }))
        })?;
        self.remainder.node_selector = self.remainder.node_selector.max(tally.remainder());
        Ok(tally.field())
    }

    /// `tolerations`: removes those of the guard.
    pub(super) fn tolerations(
        &mut self,
        guard: &Guard,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Outcome, Malformed> {
        if cursor.peek()? != b'[' || guard.tolerations().is_empty() {
            return cursor.skip().map(|()| Outcome::Keep);
        }
        let mut tally = Tally::default();
        cursor.array(edits, |cursor, _, _| {
            let found = Toleration::read(cursor)?;
            Ok::<_, Malformed>(tally.toleration(guard, found.as_ref()))
        })?;
        self.remainder.tolerations = self.remainder.tolerations.max(tally.remainder());
        Ok(tally.field())
    }

    /// `f:nodeSelector`. It is one atomic field, `{}` (`+mapType=atomic` in core/v1); entries from before that marker
    /// have a member for each key.
    pub(super) fn owned_node_selector(&mut self, guard: &Guard, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let start = cursor.member();
        let mut parts = Vec::new();
        if cursor.peek()? == b'{' {
            let mut cuts = Edits::new();
            cursor.object(&mut cuts, |cursor, _, key| {
                cursor.skip()?;
                let key = key.decode();
                let hidden =
                    key.strip_prefix("f:").is_some_and(|key| guard.entries().iter().any(|entry| entry.key == key));
                Ok::<_, Malformed>(if hidden { Outcome::Remove } else { Outcome::Keep })
            })?;
            parts = cuts.into_ranges().collect();
        } else {
            cursor.skip()?;
        }
        self.node_selectors.push(OwnedField { cut: Cut::around(cursor, start), parts });
        Ok(())
    }

    /// `f:tolerations`, which is one atomic field.
    pub(super) fn owned_tolerations(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let start = cursor.member();
        cursor.skip()?;
        self.tolerations.push(OwnedField { cut: Cut::around(cursor, start), parts: Vec::new() });
        Ok(())
    }

    /// Removes the entries for fields that are hidden.
    pub(super) fn conclude(mut self, program: &Program, edits: &mut Edits) {
        // No manager owns what admission adds to a pod, so a manager owns the field only because of the guard.
        let hidden_from = if program.is_of_pods() { Remainder::Admitted } else { Remainder::Nothing };
        let selectors_are_gone = self.remainder.node_selector >= hidden_from;
        let tolerations_are_gone = self.remainder.tolerations >= hidden_from;
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
