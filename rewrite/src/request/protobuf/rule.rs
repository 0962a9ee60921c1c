//! Rules of roles.

use std::ops::Range;

use super::super::permissions::{Permissions, RuleLengths};
use super::super::refusal::{Reason, Refusal};
use super::fields::Fields;
use crate::json::{Fault as _, Step};
use crate::program::Names;
use crate::protobuf::Message;

/// Maps a rule, and counts its permissions.
pub(super) fn rule(
    fields: &mut Fields<'_, '_>,
    permissions: &mut Permissions,
    message: &Message,
    range: &Range<usize>,
) -> Result<(), Refusal> {
    let groups = texts(fields, range, message.number("apiGroups"))?;
    let resources = texts(fields, range, message.number("resources"))?;
    let lengths = RuleLengths {
        verbs: count(fields, range, message.number("verbs"))?,
        groups: groups.len(),
        resources: resources.len(),
        names: count(fields, range, message.number("resourceNames"))?,
        paths: count(fields, range, message.number("nonResourceURLs"))?,
    };
    permissions.add(lengths).map_err(|sum| Reason::TooManyPermissions { sum })?;
    let about = Names::of(&groups, &resources);
    let Some(number) = message.number("resourceNames").filter(|_| about != Names::OfOthers) else { return Ok(()) };
    let mut names = fields.splice.fields(range.clone());
    while let Some(found) = names.next(|other| other == number)? {
        let host = fields.settings.names.in_rule(about, fields.splice.bytes(&found));
        if let Some(host) = host.map_err(|refusal: Refusal| refusal.within(Step::Key("resourceNames")))? {
            fields.splice.replace(&found, host);
        }
    }
    Ok(())
}

fn count(fields: &Fields<'_, '_>, range: &Range<usize>, number: Option<u32>) -> Result<usize, Refusal> {
    let mut count = 0;
    let mut found = fields.splice.fields(range.clone());
    while found.next(|other| Some(other) == number)?.is_some() {
        count += 1;
    }
    Ok(count)
}

fn texts(fields: &Fields<'_, '_>, range: &Range<usize>, number: Option<u32>) -> Result<Vec<String>, Refusal> {
    let mut texts = Vec::new();
    let mut found = fields.splice.fields(range.clone());
    while let Some(text) = found.next(|other| Some(other) == number)? {
        texts.push(String::from_utf8_lossy(fields.splice.bytes(&text)).into_owned());
    }
    Ok(texts)
}
