//! Access reviews for the host.
//!
//! A client may ask about namespaces that do not exist, and about names that no object can have. An API server allows that, so
//! nothing of it is refused. The review asks about the root namespace instead, or about a name that no object on the host has.
//! The [view](crate::View::answering) of the response restores the original text.

use bytes::Bytes;

use super::Refusal;
use super::Request;
use super::object::{Writer, quotes_of, string};
use super::reference::Named;
use crate::json::{Cursor, Edits, Text, quoted};
use crate::mapping::FOREIGN_PREFIX;
use crate::name::VirtualNamespace;
use crate::program::Place;

// === impl Request ===

impl Request {
    /// The namespace to ask about instead of this one, which may be any text.
    pub(super) fn asked_namespace(&self, given: &[u8]) -> Result<Bytes, Refusal> {
        let Some(root) = &self.root else { return self.host(given).map(|host| host.to_bytes()) };
        let host = VirtualNamespace::from_bytes(given).ok().and_then(|name| self.mapping.host(&name).ok());
        let member = host.filter(|host| self.mapping.member(host.as_ref()).is_some());
        Ok(member.map_or_else(|| root.to_bytes(), |host| host.to_bytes()))
    }

    /// The name to ask about instead of that of a ClusterRole, which may be any text.
    pub(super) fn asked_role(&self, given: &str) -> String {
        self.mapping.role(given).unwrap_or_else(|_| format!("{FOREIGN_PREFIX}{given}"))
    }

    /// The name to ask about instead of that of a namespace, which may be any text.
    pub(super) fn asked_name(&self, given: &str) -> Result<String, Refusal> {
        if self.root.is_none() {
            return self.host(given.as_bytes()).map(|host| host.to_string());
        }
        let host = VirtualNamespace::new(given).ok().and_then(|name| self.mapping.host(&name).ok());
        Ok(host.map_or_else(|| format!("{FOREIGN_PREFIX}{given}"), |host| host.to_string()))
    }

    /// Groups that are added to a review.
    pub(super) fn added_groups(&self) -> &[String] {
        &self.groups
    }
}

// === impl Writer ===

impl Writer<'_> {
    /// `resourceAttributes`.
    pub(super) fn resource_attributes(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        if cursor.peek()? != b'{' {
            return Ok(cursor.skip()?);
        }
        let resource = cursor.look_up("resource")?;
        let named = Named::at(Place::ResourceAttributes, |word| resource.is_some_and(|resource| resource.is(word)));
        let open = cursor.at();
        let is_empty = cursor.is_empty_container();
        let mut names_one = false;
        self.members(&["resource", "name", "namespace"], cursor, edits, |writer, key, cursor, edits| {
            match key {
                "namespace" => {
                    names_one = true;
                    writer.report.about.namespace = writer.asked_namespace(cursor, edits)?;
                }
                "name" if named != Named::Other => {
                    let Some(text) = given(string(cursor)?) else { return Ok(()) };
                    let name = text.decode().into_owned();
                    let host = match named {
                        Named::Role => writer.request.asked_role(&name),
                        _ => writer.request.asked_name(&name)?,
                    };
                    edits.replace(quotes_of(&text), quoted(&host).into());
                    writer.report.about.name = Some(name);
                }
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        if let (false, Some(root)) = (names_one, &self.request.root) {
            edits.insert(open + 1, format!("\"namespace\":\"{root}\"{}", if is_empty { "" } else { "," }));
        }
        Ok(())
    }

    /// The namespace of a review. Returns the original text.
    pub(super) fn asked_namespace(
        &self,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Option<String>, Refusal> {
        cursor.peek()?;
        let start = cursor.at();
        let text = given(string(cursor)?);
        let host = match &text {
            Some(text) => self.request.asked_namespace(&text.bytes())?,
            None => match &self.request.root {
                Some(root) => root.to_bytes(),
                None => return Ok(None),
            },
        };
        edits.replace(start..cursor.at(), [b"\"", &host[..], b"\""].concat().into());
        Ok(text.map(|text| text.decode().into_owned()))
    }

    /// The namespace of a rules review. The host refuses a review without one.
    pub(super) fn rules_namespace(&self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        if let Some(text) = given(string(cursor)?) {
            edits.replace(text.range(), self.request.asked_namespace(&text.bytes())?);
        }
        Ok(())
    }

    /// A group in a list. Additional groups are inserted before the first.
    pub(super) fn group(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        cursor.peek()?;
        if !std::mem::replace(&mut self.has_groups, true) {
            let added = self.request.added_groups().iter().map(|group| quoted(group) + ",");
            let added: String = added.collect();
            if !added.is_empty() {
                edits.insert(cursor.at(), added);
            }
        }
        self.identity(cursor, edits)
    }
}

/// A text that is not empty.
fn given(text: Option<Text<'_>>) -> Option<Text<'_>> {
    text.filter(|text| !text.raw.is_empty())
}

#[cfg(test)]
mod tests;
