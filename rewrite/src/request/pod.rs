//! Adds the guard to pod specifications.

use super::object::{Writer, quotes_of, string};
use super::{Form, Reason, Refusal};
use crate::Guard;
use crate::guard::Entry;
use crate::json::{Cursor, Edits, Fate, Fault, Malformed, Step};
use crate::program::{Node, descend};

/// The guarded fields of the current specification.
#[derive(Default)]
pub(super) struct PodFields {
    node_selector: bool,
    tolerations: bool,
}

/// The labels of the guard in a node selector.
pub(super) struct GuardedLabels<'g> {
    entries: &'g [Entry],
    has: Vec<bool>,
    /// A label for which another value is requested, and that value.
    conflict: Option<(usize, String)>,
}

// === impl GuardedLabels ===

impl<'g> GuardedLabels<'g> {
    pub(super) fn new(guard: &'g Guard) -> Self {
        let entries = guard.entries();
        Self { entries, has: vec![false; entries.len()], conflict: None }
    }

    /// The index of this label.
    pub(super) fn position(&self, is: impl Fn(&str) -> bool) -> Option<usize> {
        self.entries.iter().position(|entry| is(&entry.key))
    }

    /// Records a label. Returns whether its value is that of the guard.
    pub(super) fn claim(&mut self, number: usize, is: impl FnOnce(&str) -> bool) -> Result<bool, Refusal> {
        if std::mem::replace(&mut self.has[number], true) {
            return Err(Reason::Duplicate.into());
        }
        Ok(is(&self.entries[number].value))
    }

    /// Another value is requested. The first one is reported to the client.
    pub(super) fn conflict(&mut self, number: usize, wanted: String) {
        self.conflict.get_or_insert((number, wanted));
    }

    /// The missing labels, at the end of the selector.
    pub(super) fn missing(self) -> Result<impl Iterator<Item = &'g Entry>, Refusal> {
        if let Some((number, wanted)) = self.conflict {
            // Paths write keys of maps in brackets, and only this code knows that it is a map.
            let entry = &self.entries[number];
            let refusal = Refusal::from(Reason::Conflict { wanted, guard: entry.value.clone() });
            return Err(refusal.within(Step::MapKey(&entry.key)));
        }
        Ok(self.entries.iter().zip(self.has).filter(|(_, has)| !has).map(|(entry, _)| entry))
    }
}

// === impl Writer ===

impl Writer<'_> {
    pub(super) fn pod_spec(&mut self, node: &Node, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        if cursor.peek()? != b'{' {
            // A pod without a specification has no containers: the host refuses it.
            return Ok(cursor.skip()?);
        }
        let object = cursor.clone();
        self.pod = PodFields::default();
        descend(self, node, cursor, edits)?;
        if self.request.form == Form::Partial {
            return Ok(());
        }

        let mut missing = Vec::new();
        if !self.pod.node_selector && !self.request.guard.entries().is_empty() {
            missing.push(("nodeSelector", format!(r#""nodeSelector":{}"#, self.whole_selector())));
        }
        if !self.pod.tolerations && !self.request.guard.tolerations().is_empty() {
            missing.push(("tolerations", format!(r#""tolerations":{}"#, self.whole_tolerations())));
        }
        self.add(&object, missing, edits)
    }

    /// Adds members to an object, which is the next token of `object`. In a ControllerRevision, they are where Go sorts them
    /// (`json.Marshal` of a map), because controllers compare the bytes (`Match` in `pkg/controller/daemon/update.go`).
    fn add(&self, object: &Cursor<'_>, mut members: Vec<(&str, String)>, edits: &mut Edits) -> Result<(), Refusal> {
        if members.is_empty() {
            return Ok(());
        }
        if !self.in_revision {
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
            Ok::<_, Malformed>(Fate::Keep)
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

    pub(super) fn node_selector(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        self.pod.node_selector = true;
        match cursor.peek()? {
            b'{' => {}
            b'n' => {
                let whole = self.whole_selector();
                let any = !self.request.guard.entries().is_empty();
                return self.null(any, whole, cursor, edits);
            }
            _ => return Err(Reason::WrongType { expected: "an object" }.into()),
        }
        let mut labels = GuardedLabels::new(&self.request.guard);
        let object = cursor.clone();
        cursor.object(edits, |cursor, _, key| {
            let Some(number) = labels.position(|label| key.is(label)) else {
                cursor.skip()?;
                return Ok(Fate::Keep);
            };
            let value = string(cursor)?;
            if labels.claim(number, |guard| value.is_some_and(|value| value.is(guard)))? {
                return Ok(Fate::Keep);
            }
            if value.is_none() && self.request.form == Form::Partial {
                self.report.removes_guard = true;
            } else {
                labels.conflict(number, value.map_or_else(|| "null".to_owned(), |value| value.decode().into_owned()));
            }
            Ok::<_, Refusal>(Fate::Keep)
        })?;
        let member = |entry: &'_ Entry| String::from_utf8_lossy(&entry.member).into_owned();
        let missing: Vec<_> = labels.missing()?.map(|entry| (&*entry.key, member(entry))).collect();
        if self.request.form == Form::Whole { self.add(&object, missing, edits) } else { Ok(()) }
    }

    pub(super) fn tolerations(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        self.pod.tolerations = true;
        let wanted = self.request.guard.tolerations();
        match cursor.peek()? {
            b'[' => {}
            b'n' => {
                let whole = self.whole_tolerations();
                return self.null(!wanted.is_empty(), whole, cursor, edits);
            }
            _ => return Err(Reason::WrongType { expected: "an array" }.into()),
        }
        let mut has = vec![false; wanted.len()];
        let extent = cursor.array(edits, |cursor, _, _| {
            if let Some(number) = self.request.guard.toleration_at(cursor)? {
                has[number] = true;
            }
            Ok::<_, Refusal>(Fate::Keep)
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

    /// A guarded field is `null`: absent in a whole object, and removed by a patch.
    fn null(
        &mut self,
        guarded: bool,
        whole: String,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Refusal> {
        let start = cursor.at();
        cursor.skip()?;
        match self.request.form {
            _ if !guarded => {}
            Form::Whole => edits.replace(start..cursor.at(), whole.into()),
            Form::Partial => self.report.removes_guard = true,
        }
        Ok(())
    }

    fn whole_selector(&self) -> String {
        let entries = self.request.guard.entries().iter();
        let entries = entries.map(|entry| (&*entry.key, &*entry.value));
        format!("{{{}}}", super::selector::members_of(entries))
    }

    fn whole_tolerations(&self) -> String {
        let elements: Vec<_> =
            self.request.guard.tolerations().iter().map(|(_, json)| String::from_utf8_lossy(json)).collect();
        format!("[{}]", elements.join(","))
    }
}
