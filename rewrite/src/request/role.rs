//! ClusterRoles, and the labels of other objects that assign them to a virtual cluster.
//!
//! The label that assigns a role to the virtual cluster is added. All other labels are parked, and `aggregationRule` is parked
//! in an annotation. The host still merges patches as the client expects: a label is still a label, and `aggregationRule`, which
//! contains only one atomic list, is still replaced as a whole.

use std::ops::Range;

use bytes::Bytes;

use super::fields::Fields;
use super::form::Form;
use super::keys::each_key;
use super::open::Open;
use super::refusal::{Reason, Refusal};
use super::strings::quotes_of;
use crate::json::{Cursor, Edits, Outcome, quoted};
use crate::name::CLUSTER_LABEL;
use crate::parked::{AGGREGATION_ANNOTATION, parked_annotation};

/// The positions of the metadata of a role in the body.
#[derive(Default)]
pub(super) struct RoleParts {
    /// Whether there is metadata, which a merge patch can omit.
    has_metadata: bool,
    metadata: Option<Open>,
    has_labels: bool,
    annotations: Option<Annotations>,
    /// The JSON value to park.
    aggregation: Option<Range<usize>>,
}

enum Annotations {
    Map(Open),
    Null(Range<usize>),
}

// === impl RoleParts ===

impl RoleParts {
    /// Of an object that is the next value.
    pub(super) fn of(object: &Cursor<'_>) -> Result<Self, Refusal> {
        Ok(Self { has_metadata: object.member_at("metadata")?.is_some(), ..Self::default() })
    }

    /// `metadata`, which is the next value.
    pub(super) fn metadata(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Refusal> {
        if cursor.peek()? == b'{' {
            self.metadata = Some(Open::of(cursor));
        }
        Ok(())
    }

    /// `metadata.labels`: adds the virtual cluster's own one. `parked` returns the key under which the host keeps a label,
    /// if it is another one.
    pub(super) fn labels(
        &mut self,
        fields: &mut Fields<'_>,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        parked: impl Fn(&str) -> Option<String>,
    ) -> Result<(), Refusal> {
        self.has_labels = true;
        let (cluster, form) = (fields.settings.cluster(), fields.settings.form);
        let ours = || format!("\"{CLUSTER_LABEL}\":\"{cluster}\"");
        match (cursor.peek()?, form) {
            (b'{', form) => {
                if form == Form::Whole {
                    Open::of(cursor).insert(ours(), edits);
                }
                each_key(cursor, edits, |key, edits| {
                    if let Some(host) = parked(&key.decode()) {
                        edits.replace(quotes_of(&key), quoted(&host).into());
                    }
                    Ok(())
                })
            }
            (b'n', Form::Whole) => {
                let at = cursor.at();
                cursor.skip()?;
                edits.replace(at..cursor.at(), format!("{{{}}}", ours()).into());
                Ok(())
            }
            (b'n', Form::Partial) => {
                // It would remove labels that must stay.
                fields.report.removes_guard = true;
                Ok(cursor.skip()?)
            }
            _ => Err(Reason::WrongType { expected: "an object" }.into()),
        }
    }

    /// `metadata.annotations` of a ClusterRole.
    pub(super) fn annotations(
        &mut self,
        fields: &mut Fields<'_>,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Refusal> {
        match cursor.peek()? {
            b'{' => {
                self.annotations = Some(Annotations::Map(Open::of(cursor)));
                each_key(cursor, edits, |key, edits| {
                    if let Some(host) = parked_annotation(&key.decode()) {
                        edits.replace(quotes_of(&key), quoted(&host).into());
                    }
                    Ok(())
                })
            }
            b'n' => {
                let at = cursor.at();
                cursor.skip()?;
                self.annotations = Some(Annotations::Null(at..cursor.at()));
                // A merge patch removes all annotations, and the parked one is not among those of the client.
                fields.report.removes_guard |= fields.settings.form == Form::Partial;
                Ok(())
            }
            _ => Err(Reason::WrongType { expected: "an object" }.into()),
        }
    }

    /// `aggregationRule`, which is removed.
    pub(super) fn aggregation_rule(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Outcome, Refusal> {
        if !matches!(cursor.peek()?, b'{' | b'n') {
            return Err(Reason::WrongType { expected: "an object" }.into());
        }
        let at = cursor.at();
        cursor.skip()?;
        let range = at..cursor.at();
        if self.has_metadata {
            self.aggregation = Some(range);
            return Ok(Outcome::Remove);
        }
        // The member is replaced by the missing metadata. No escape in its key is a quote.
        let before = cursor.slice(0..at);
        let quote = |before: &[u8]| memchr::memrchr(b'"', before).expect("a member has a key");
        let end = quote(before);
        edits.replace(quote(&before[..end]) + 1..end, Bytes::from_static(b"metadata"));
        let entry = parked_rule(cursor.slice(range.clone()));
        edits.replace(range, format!("{{\"annotations\":{{{entry}}}}}").into());
        Ok(Outcome::Keep)
    }

    /// Adds what is missing, at the end of the object.
    pub(super) fn conclude(self, form: Form, cluster: &str, cursor: &Cursor<'_>, edits: &mut Edits) {
        let Some(metadata) = self.metadata else { return };
        let mut missing = Vec::new();
        if form == Form::Whole && !self.has_labels {
            missing.push(format!("\"labels\":{{\"{CLUSTER_LABEL}\":\"{cluster}\"}}"));
        }
        if let Some(aggregation) = self.aggregation {
            let value = cursor.slice(aggregation);
            let entry = parked_rule(value);
            match self.annotations {
                _ if value == b"null" && form == Form::Whole => {}
                Some(Annotations::Map(map)) => map.insert(entry, edits),
                Some(Annotations::Null(range)) => edits.replace(range, format!("{{{entry}}}").into()),
                None => missing.push(format!("\"annotations\":{{{entry}}}")),
            }
        }
        if !missing.is_empty() {
            metadata.insert(missing.join(","), edits);
        }
    }
}

/// The annotation that parks an `aggregationRule`. In a merge patch, `null` removes it.
fn parked_rule(value: &[u8]) -> String {
    let value = if value == b"null" { "null".to_owned() } else { quoted(&String::from_utf8_lossy(value)) };
    format!("\"{AGGREGATION_ANNOTATION}\":{value}")
}

#[cfg(test)]
mod tests;
