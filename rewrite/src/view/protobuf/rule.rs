//! Rules of roles: the names of namespaces and ClusterRoles in them.

use std::ops::Range;

use super::super::error::Unreadable;
use super::names::Names;
use crate::program;
use crate::protobuf::Message;

pub(super) fn rule(names: &mut Names<'_, '_>, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
    let groups = texts(names, range, message.number("apiGroups"))?;
    let resources = texts(names, range, message.number("resources"))?;
    let Some(number) = message.number("resourceNames") else { return Ok(()) };
    match program::Names::of(&groups, &resources) {
        program::Names::OfNamespaces => names.namespaces(range, number),
        program::Names::OfRoles => {
            let mut fields = names.splice.fields(range.clone());
            while let Some(name) = fields.next(|other| other == number)? {
                names.role(&name);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn texts(names: &Names<'_, '_>, range: &Range<usize>, number: Option<u32>) -> Result<Vec<String>, Unreadable> {
    let mut texts = Vec::new();
    let mut fields = names.splice.fields(range.clone());
    while let Some(found) = fields.next(|other| Some(other) == number)? {
        texts.push(String::from_utf8_lossy(names.splice.bytes(&found)).into_owned());
    }
    Ok(texts)
}
