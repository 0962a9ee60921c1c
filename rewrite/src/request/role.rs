//! ClusterRoles and references to them.
//!
//! The label that assigns a role to the virtual cluster is added. All other labels are parked, and `aggregationRule` is parked
//! in an annotation. The host still merges patches as the client expects: a label is still a label, and `aggregationRule`, which
//! contains only one atomic list, is still replaced as a whole.

use std::ops::Range;

use bytes::Bytes;

use super::object::{Writer, quotes_of, string};
use super::reference::Named;
use super::{Form, Reason, Refusal};
use crate::json::{Cursor, Edits, Fate, Fault as _, Step, Text, quoted};
use crate::name::{CLUSTER_LABEL, HIDDEN_PREFIX};
use crate::parked::{AGGREGATION_ANNOTATION, parked, parked_annotation};
use crate::program::{Node, Place, descend};

/// The positions of the metadata of a role in the body.
#[derive(Default)]
pub(super) struct RoleParts {
    /// Whether there is metadata, which a merge patch can omit.
    pub(super) has_metadata: bool,
    metadata: Option<Open>,
    has_labels: bool,
    annotations: Option<Annotations>,
    /// The JSON value to park.
    aggregation: Option<Range<usize>>,
}

/// An object, with the position after its brace for insertions.
#[derive(Clone, Copy)]
struct Open {
    at: usize,
    is_empty: bool,
}

enum Annotations {
    Map(Open),
    Null(Range<usize>),
}

// === impl RoleParts ===

impl RoleParts {
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

// === impl Open ===

impl Open {
    fn of(cursor: &Cursor<'_>) -> Self {
        Self { at: cursor.at(), is_empty: cursor.is_empty_container() }
    }

    fn insert(self, members: String, edits: &mut Edits) {
        edits.insert(self.at + 1, members + if self.is_empty { "" } else { "," });
    }
}

// === impl Writer ===

impl Writer<'_> {
    /// The name of a ClusterRole. An empty one stays unchanged.
    pub(super) fn role(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let Some(text) = string(cursor)?.filter(|text| !text.raw.is_empty()) else { return Ok(()) };
        let host = quoted(&self.request.role(&text.decode())?);
        edits.replace(quotes_of(&text), host.into());
        Ok(())
    }

    /// `roleRef` of a binding.
    pub(super) fn role_ref(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let kind = cursor.look_up("kind")?;
        let named = Named::at(Place::RoleRef, |word| kind.is_some_and(|kind| kind.is(word)));
        self.members(&["kind", "name"], cursor, edits, |writer, key, cursor, edits| match key {
            "name" if named == Named::Role => writer.role(cursor, edits),
            _ => Ok(cursor.skip()?),
        })
    }

    /// `metadata` of a ClusterRole.
    pub(super) fn role_meta(&mut self, node: &Node, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        if cursor.peek()? == b'{' {
            self.role.metadata = Some(Open::of(cursor));
        }
        descend(self, node, cursor, edits).map(drop)
    }

    /// `metadata.labels` of a ClusterRole.
    pub(super) fn role_labels(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        self.own_labelled(cursor, edits, |key| Some(parked(key)))
    }

    /// Adds the virtual cluster's own label to the labels. `parked` returns the key under which the host keeps a label,
    /// if it is another one.
    pub(super) fn own_labelled(
        &mut self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        parked: impl Fn(&str) -> Option<String>,
    ) -> Result<(), Refusal> {
        self.role.has_labels = true;
        let ours = || format!("\"{CLUSTER_LABEL}\":\"{}\"", self.request.mapping.cluster());
        match (cursor.peek()?, self.request.form) {
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
                self.report.removes_guard = true;
                Ok(cursor.skip()?)
            }
            _ => Err(Reason::WrongType { expected: "an object" }.into()),
        }
    }

    /// `metadata.annotations` of a ClusterRole.
    pub(super) fn role_annotations(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        match cursor.peek()? {
            b'{' => {
                self.role.annotations = Some(Annotations::Map(Open::of(cursor)));
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
                self.role.annotations = Some(Annotations::Null(at..cursor.at()));
                // A merge patch removes all annotations, and the parked one is not among those of the client.
                self.report.removes_guard |= self.request.form == Form::Partial;
                Ok(())
            }
            _ => Err(Reason::WrongType { expected: "an object" }.into()),
        }
    }

    /// `f:labels` or `f:annotations` in managed fields, as a client sends them back.
    pub(super) fn owned_keys(
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
        parked: impl Fn(&str) -> Option<String>,
    ) -> Result<(), Refusal> {
        if cursor.peek()? != b'{' {
            return Ok(cursor.skip()?);
        }
        each_key(cursor, edits, |key, edits| {
            if let Some(host) = key.decode().strip_prefix("f:").and_then(&parked) {
                edits.replace(quotes_of(&key), quoted(&format!("f:{host}")).into());
            }
            Ok(())
        })
    }

    /// `aggregationRule`, which is removed.
    pub(super) fn aggregation_rule(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Fate, Refusal> {
        if !matches!(cursor.peek()?, b'{' | b'n') {
            return Err(Reason::WrongType { expected: "an object" }.into());
        }
        let at = cursor.at();
        cursor.skip()?;
        let range = at..cursor.at();
        if self.role.has_metadata {
            self.role.aggregation = Some(range);
            return Ok(Fate::Remove);
        }
        // The member is replaced by the missing metadata. No escape in its key is a quote.
        let before = cursor.slice(0..at);
        let quote = |before: &[u8]| memchr::memrchr(b'"', before).expect("a member has a key");
        let end = quote(before);
        edits.replace(quote(&before[..end]) + 1..end, Bytes::from_static(b"metadata"));
        let entry = parked_rule(cursor.slice(range.clone()));
        edits.replace(range, format!("{{\"annotations\":{{{entry}}}}}").into());
        Ok(Fate::Keep)
    }

    /// Labels or annotations. None of them may be Atoll's own.
    pub(super) fn hidden_keys(cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        if cursor.peek()? == b'{' { each_key(cursor, edits, |_, _| Ok(())) } else { Ok(cursor.skip()?) }
    }
}

/// The annotation that parks an `aggregationRule`. In a merge patch, `null` removes it.
fn parked_rule(value: &[u8]) -> String {
    let value = if value == b"null" { "null".to_owned() } else { quoted(&String::from_utf8_lossy(value)) };
    format!("\"{AGGREGATION_ANNOTATION}\":{value}")
}

/// Visits the keys of a map. None of them may be Atoll's own.
fn each_key<'a>(
    cursor: &mut Cursor<'a>,
    edits: &mut Edits,
    mut visit: impl FnMut(Text<'a>, &mut Edits) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    cursor.object(edits, |cursor, edits, key| {
        let decoded = key.decode();
        if decoded.starts_with(HIDDEN_PREFIX) {
            return Err(Refusal::from(Reason::Protected).within(Step::MapKey(&decoded)));
        }
        visit(key, edits)?;
        cursor.skip()?;
        Ok(Fate::Keep)
    })?;
    Ok(())
}

#[cfg(test)]
mod tests;
