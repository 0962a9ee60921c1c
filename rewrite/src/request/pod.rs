//! Adds the guard to pod specifications.

use bytes::Bytes;

use super::fields::Fields;
use super::form::Form;
use super::guarded_labels::GuardedLabels;
use super::refusal::{Reason, Refusal};
use super::strings::{quotes_of, string};
use crate::json::{Cursor, Edits, Malformed, Outcome};

const COMMA: &[u8] = b",";

/// The guarded fields of the current specification.
#[derive(Default)]
pub(super) struct PodFields {
    node_selector: bool,
    tolerations: bool,
}

// === impl PodFields ===

impl PodFields {
    /// `nodeSelector`.
    pub(super) fn node_selector(
        &mut self,
        fields: &mut Fields<'_>,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Refusal> {
        self.node_selector = true;
        let guard = &fields.settings.guard;
        match cursor.peek()? {
            b'{' => {}
            b'n' => {
                let whole = guard.whole_selector();
                let any = !guard.entries().is_empty();
                return null(fields, any, whole, cursor, edits);
            }
            _ => return Err(Reason::WrongType { expected: "an object" }.into()),
        }
        let mut labels = GuardedLabels::new(guard);
        let object = cursor.clone();
        cursor.object(edits, |cursor, _, key| {
            let Some(number) = labels.position(|label| key.is(label)) else {
                cursor.skip()?;
                return Ok(Outcome::Keep);
            };
            let value = string(cursor)?;
            if labels.claim(number, |guard| value.is_some_and(|value| value.is(guard)))? {
                return Ok(Outcome::Keep);
            }
            if value.is_none() && fields.settings.form == Form::Partial {
                fields.report.removes_guard = true;
            } else {
                labels.conflict(number, value.map_or_else(|| "null".to_owned(), |value| value.decode().into_owned()));
            }
            Ok::<_, Refusal>(Outcome::Keep)
        })?;
        let missing: Vec<_> = labels.missing()?.map(|entry| (&*entry.key, &entry.member)).collect();
        if fields.settings.form == Form::Whole { add(&object, missing, fields.in_revision, edits) } else { Ok(()) }
    }

    /// `tolerations`.
    pub(super) fn tolerations(
        &mut self,
        fields: &mut Fields<'_>,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Refusal> {
        self.tolerations = true;
        let guard = &fields.settings.guard;
        let wanted = guard.tolerations();
        match cursor.peek()? {
            b'[' => {}
            b'n' => {
                let whole = guard.whole_tolerations();
                return null(fields, !wanted.is_empty(), whole, cursor, edits);
            }
            _ => return Err(Reason::WrongType { expected: "an array" }.into()),
        }
        let mut has = vec![false; wanted.len()];
        let extent = cursor.array(edits, |cursor, _, _| {
            if let Some(number) = guard.toleration_at(cursor)? {
                has[number] = true;
            }
            Ok::<_, Refusal>(Outcome::Keep)
        })?;
        // Also in a merge patch, which replaces the whole list.
        let missing: Vec<&[u8]> =
            wanted.iter().zip(has).filter(|(_, has)| !has).map(|((_, json), _)| &json[..]).collect();
        if !missing.is_empty() {
            let mut elements = if extent.kept > 0 { b",".to_vec() } else { Vec::new() };
            elements.extend(missing.join(&b","[..]));
            edits.insert(extent.close, elements);
        }
        Ok(())
    }

    /// Adds the missing fields to the specification, which is the next token of `object`.
    pub(super) fn finish(&self, fields: &Fields<'_>, object: &Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let guard = &fields.settings.guard;
        if fields.settings.form == Form::Partial {
            return Ok(());
        }
        let mut missing = Vec::new();
        if !self.node_selector && !guard.entries().is_empty() {
            missing.push(("nodeSelector", guard.selector_member()));
        }
        if !self.tolerations && !guard.tolerations().is_empty() {
            missing.push(("tolerations", guard.tolerations_member()));
        }
        add(object, missing, fields.in_revision, edits)
    }
}

/// Adds members to an object, which is the next token of `object`. In a ControllerRevision, they have the position to
/// which Go sorts them (`json.Marshal` of a map), because controllers compare the bytes (`Match` in
/// `pkg/controller/daemon/update.go`).
fn add(
    object: &Cursor<'_>,
    mut members: Vec<(&str, &Bytes)>,
    in_revision: bool,
    edits: &mut Edits,
) -> Result<(), Refusal> {
    if members.is_empty() {
        return Ok(());
    }
    if !in_revision {
        let commas = members.len() - usize::from(object.is_empty_container());
        for (number, (_, member)) in members.into_iter().enumerate() {
            edits.insert(object.at() + 1, member.clone());
            if number < commas {
                edits.insert(object.at() + 1, COMMA);
            }
        }
        return Ok(());
    }
    members.sort_unstable();
    let mut followers = vec![None; members.len()];
    let extent = object.clone().object(&mut Edits::new(), |cursor, _, next| {
        for (follower, (key, _)) in followers.iter_mut().zip(&members) {
            if follower.is_none() && *next.decode() > **key {
                *follower = Some(quotes_of(&next).start);
            }
        }
        cursor.skip()?;
        Ok::<_, Malformed>(Outcome::Keep)
    })?;
    // Whether something precedes the closing brace.
    let mut is_behind = extent.kept > 0;
    for (follower, (_, member)) in followers.into_iter().zip(members) {
        if let Some(at) = follower {
            edits.insert(at, member.clone());
            edits.insert(at, COMMA);
        } else {
            if is_behind {
                edits.insert(extent.close, COMMA);
            }
            edits.insert(extent.close, member.clone());
            is_behind = true;
        }
    }
    Ok(())
}

/// A guarded field is `null`: absent in a whole object, and removed by a patch.
fn null(
    fields: &mut Fields<'_>,
    guarded: bool,
    whole: Bytes,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Refusal> {
    let start = cursor.at();
    cursor.skip()?;
    match fields.settings.form {
        _ if !guarded => {}
        Form::Whole => edits.replace(start..cursor.at(), whole),
        Form::Partial => fields.report.removes_guard = true,
    }
    Ok(())
}
