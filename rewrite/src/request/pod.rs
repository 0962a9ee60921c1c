//! Adds the guard to pod specifications.

use super::fields::Fields;
use super::form::Form;
use super::guarded_labels::GuardedLabels;
use super::refusal::{Reason, Refusal};
use super::strings::{members_of, quotes_of, string};
use crate::Guard;
use crate::guard::Entry;
use crate::json::{Cursor, Edits, Malformed, Outcome};

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
                let whole = whole_selector(guard);
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
        let member = |entry: &'_ Entry| String::from_utf8_lossy(&entry.member).into_owned();
        let missing: Vec<_> = labels.missing()?.map(|entry| (&*entry.key, member(entry))).collect();
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
                let whole = whole_tolerations(guard);
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
            missing.push(("nodeSelector", format!(r#""nodeSelector":{}"#, whole_selector(guard))));
        }
        if !self.tolerations && !guard.tolerations().is_empty() {
            missing.push(("tolerations", format!(r#""tolerations":{}"#, whole_tolerations(guard))));
        }
        add(object, missing, fields.in_revision, edits)
    }
}

/// Adds members to an object, which is the next token of `object`. In a ControllerRevision, they have the position to
/// which Go sorts them (`json.Marshal` of a map), because controllers compare the bytes (`Match` in
/// `pkg/controller/daemon/update.go`).
fn add(
    object: &Cursor<'_>,
    mut members: Vec<(&str, String)>,
    in_revision: bool,
    edits: &mut Edits,
) -> Result<(), Refusal> {
    if members.is_empty() {
        return Ok(());
    }
    if !in_revision {
        let members: Vec<_> = members.into_iter().map(|(_, member)| member).collect();
        let comma = if object.is_empty_container() { "" } else { "," };
        edits.insert(object.at() + 1, members.join(",") + comma);
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
    let mut comma = if extent.kept > 0 { "," } else { "" };
    for (follower, (_, member)) in followers.into_iter().zip(members) {
        if let Some(at) = follower {
            edits.insert(at, format!("{member},"));
        } else {
            edits.insert(extent.close, format!("{comma}{member}"));
            comma = ",";
        }
    }
    Ok(())
}

/// A guarded field is `null`: absent in a whole object, and removed by a patch.
fn null(
    fields: &mut Fields<'_>,
    guarded: bool,
    whole: String,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Refusal> {
    let start = cursor.at();
    cursor.skip()?;
    match fields.settings.form {
        _ if !guarded => {}
        Form::Whole => edits.replace(start..cursor.at(), whole.into()),
        Form::Partial => fields.report.removes_guard = true,
    }
    Ok(())
}

fn whole_selector(guard: &Guard) -> String {
    let entries = guard.entries().iter();
    let entries = entries.map(|entry| (&*entry.key, &*entry.value));
    format!("{{{}}}", members_of(entries))
}

fn whole_tolerations(guard: &Guard) -> String {
    let elements: Vec<_> = guard.tolerations().iter().map(|(_, json)| String::from_utf8_lossy(json)).collect();
    format!("[{}]", elements.join(","))
}
