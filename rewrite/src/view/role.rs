//! ClusterRoles: whether they are visible, and their parked fields.
//!
//! Those of the virtual cluster have its label and its prefix. Those that every cluster has are shown unchanged.

use std::borrow::Cow;

use bytes::Bytes;
use kube_wire::selector::LabelSelector;

use super::filter::Verdict;
use super::key_map::visit_keys;
use super::last_applied::LastApplied;
use crate::json::{Cursor, Edits, Malformed, Outcome, Text, unquoted};
use crate::mapping::role::SeenRole;
use crate::name::{CLUSTER_LABEL, ClusterName, HIDDEN_PREFIX, LAST_APPLIED_ANNOTATION};
use crate::parked::{AGGREGATION_ANNOTATION, added, unparked, unparked_annotation};

/// The parts of a ClusterRole. Only its end shows whether it is visible.
#[derive(Default)]
pub(super) struct Role {
    seen: Option<SeenRole>,
    is_labelled: bool,
    /// Which requirements of the selector, if any, the visible labels meet.
    held: MatchedRequirements,
    /// The `aggregationRule` that was parked.
    aggregation: Option<String>,
    /// The position to insert it.
    behind_rules: Option<usize>,
}

/// Which requirements of a selector the labels meet that have been read so far. Clients choose the number of
/// requirements and of labels, so no label is kept.
#[derive(Default)]
struct MatchedRequirements(Vec<Option<bool>>);

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

    /// `metadata.labels` of a ClusterRole.
    pub(super) fn labels(
        &mut self,
        cluster: &ClusterName,
        selector: Option<&LabelSelector>,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Outcome, Malformed> {
        visit_keys(cursor, edits, |key, cursor, edits| {
            let decoded = key.decode();
            if decoded.starts_with(HIDDEN_PREFIX) {
                let is_label = decoded == CLUSTER_LABEL && cursor.peek()? == b'"';
                if is_label && cursor.string()?.is(cluster.as_str()) {
                    self.is_labelled = true;
                } else if !is_label {
                    cursor.skip()?;
                }
                return Ok(Outcome::Remove);
            }
            unpark(key, &decoded, 0, edits);
            match selector {
                Some(selector) if cursor.peek()? == b'"' => {
                    let shown = unparked(&decoded).unwrap_or(Cow::Borrowed(&*decoded));
                    self.held.note(selector, &shown, &cursor.string()?.decode());
                }
                _ => cursor.skip()?,
            }
            Ok(Outcome::Keep)
        })
    }

    /// `metadata.annotations` of a ClusterRole.
    pub(super) fn annotations(
        &mut self,
        mut last_applied: Option<&mut LastApplied>,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Outcome, Malformed> {
        visit_keys(cursor, edits, |key, cursor, edits| {
            let decoded = key.decode();
            if decoded == AGGREGATION_ANNOTATION && cursor.peek()? == b'"' {
                self.aggregation = Some(cursor.string()?.decode().into_owned());
                return Ok(Outcome::Remove);
            }
            if decoded == LAST_APPLIED_ANNOTATION
                && let Some(last_applied) = &mut last_applied
            {
                last_applied.note(cursor)?;
                return Ok(Outcome::Keep);
            }
            if let Some(shown) = unparked_annotation(&decoded) {
                edits.replace(key.range(), Bytes::from_static(shown.as_bytes()));
            }
            cursor.skip()?;
            Ok(if decoded.starts_with(HIDDEN_PREFIX) { Outcome::Remove } else { Outcome::Keep })
        })
    }

    /// `rules` of a ClusterRole have ended.
    pub(super) fn rules_end(&mut self, cursor: &Cursor<'_>) {
        self.behind_rules = Some(cursor.at());
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

// === impl MatchedRequirements ===

impl MatchedRequirements {
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

/// `f:labels` or `f:annotations` of a manager of a ClusterRole.
pub(super) fn owned_keys(cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Outcome, Malformed> {
    visit_keys(cursor, edits, |key, cursor, edits| {
        cursor.skip()?;
        let decoded = key.decode();
        let Some(field) = decoded.strip_prefix("f:") else { return Ok(Outcome::Keep) };
        if field.starts_with(HIDDEN_PREFIX) {
            return Ok(Outcome::Remove);
        }
        unpark(key, &decoded, "f:".len(), edits);
        Ok(Outcome::Keep)
    })
}
