//! References to other objects, and rules about them.

use std::ops::Range;

use super::Unreadable;
use super::object::ObjectReader;
use crate::mapping::FOREIGN_PREFIX;
use crate::mapping::role::SeenRole;
use crate::program::{Names, Place};
use crate::protobuf::{Found, Message};
use crate::view::Filter;

/// The type of the object in a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Namespace,
    Identity,
    Other,
}

// === impl ObjectReader ===

impl ObjectReader<'_, '_> {
    /// A message with the name, and perhaps the namespace, of another object.
    pub(super) fn reference(
        &mut self,
        place: Place,
        message: &Message,
        range: &Range<usize>,
    ) -> Result<(), Unreadable> {
        match place {
            Place::Claim if self.state.filter == Filter::ByClaim => {
                if let Some(namespace) = self.given(message, range, "namespace")? {
                    self.deciding(&namespace);
                }
                Ok(())
            }
            Place::ParentReference if self.state.filter == Filter::ByParent => {
                self.state.note_name(self.splice.text(range, message.number("name"))?);
                if let Some(namespace) = self.given(message, range, "namespace")? {
                    self.deciding(&namespace);
                }
                Ok(())
            }
            Place::Reference if self.is_renamed(message, range)? => self.renamed(message, range),
            Place::Reference | Place::BindingTarget | Place::BoundObject | Place::Claim | Place::ParentReference => {
                self.referred(message, range)
            }
            Place::EventObject => {
                if self.splice.text(range, message.number("kind"))? == b"Node" {
                    self.state.note_event_about(self.splice.text(range, message.number("name"))?);
                }
                self.referred(message, range)
            }
            Place::Subject => self.subject(message, range),
            Place::ResourceAttributes => self.resource_attributes(message, range),
            Place::RoleRef => self.role_ref(message, range),
            place => unreachable!("no table has a message that is a {place:?}, as a test shows"),
        }
    }

    /// Whether a reference is to a cluster-scoped custom object.
    fn is_renamed(&self, message: &Message, range: &Range<usize>) -> Result<bool, Unreadable> {
        let [version, kind] = ["apiVersion", "kind"].map(|key| self.splice.text(range, message.number(key)));
        let (version, kind) = (String::from_utf8_lossy(version?), String::from_utf8_lossy(kind?));
        Ok(self.state.view.mapping.objects.renames(&version, &kind))
    }

    fn renamed(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let Some(found) = self.given(message, range, "name")? else { return Ok(()) };
        let host = self.splice.bytes(&found);
        let shown = self.state.view.mapping.seen_object(host);
        self.splice.replace(&found, shown.unwrap_or_else(|| [FOREIGN_PREFIX.as_bytes(), host].concat().into()));
        Ok(())
    }

    /// `kind`, `name` and `namespace`, as in an owner reference or the object of an Event.
    fn referred(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let to_namespace = self.splice.text(range, message.number("kind"))? == b"Namespace";
        self.named(if to_namespace { Named::Namespace } else { Named::Other }, message, range)
    }

    fn subject(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let kind = self.splice.text(range, message.number("kind"))?;
        let is_identity = matches!(kind, b"User" | b"Group");
        self.named(if is_identity { Named::Identity } else { Named::Other }, message, range)
    }

    fn named(&mut self, named: Named, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        if let Some(namespace) = self.given(message, range, "namespace")? {
            self.namespace(&namespace);
        }
        match (self.given(message, range, "name")?, named) {
            (Some(name), Named::Namespace) => self.namespace(&name),
            (Some(name), Named::Identity) => self.identity(&name),
            (_, Named::Other) | (None, _) => {}
        }
        Ok(())
    }

    /// `resource`, `name` and `namespace`. Reverts the changes of [`request`](crate::request).
    fn resource_attributes(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let resource = self.splice.text(range, message.number("resource"))?;
        let (to_namespace, to_role) = (resource == b"namespaces", resource == b"clusterroles");
        let Some(about) = self.state.view.about.clone() else {
            return self.named(if to_namespace { Named::Namespace } else { Named::Other }, message, range);
        };
        if let Some(namespace) = self.given(message, range, "namespace")? {
            let asked = about.namespace.clone().unwrap_or_default();
            self.splice.replace(&namespace, asked.into());
        }
        if let (Some(name), Some(asked)) = (self.given(message, range, "name")?, about.name.clone())
            && (to_namespace || to_role)
        {
            self.splice.replace(&name, asked.into());
        }
        Ok(())
    }

    /// A rule of a role.
    pub(super) fn rule(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let groups = self.texts(range, message.number("apiGroups"))?;
        let resources = self.texts(range, message.number("resources"))?;
        let Some(number) = message.number("resourceNames") else { return Ok(()) };
        match Names::of(&groups, &resources) {
            Names::OfNamespaces => self.namespaces(range, number),
            Names::OfRoles => {
                let mut names = self.splice.fields(range.clone());
                while let Some(name) = names.next(|other| other == number)? {
                    self.role(&name);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `roleRef` of a binding.
    fn role_ref(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let is_mapped = self.splice.text(range, message.number("kind"))? == b"ClusterRole";
        if let Some(name) = self.given(message, range, "name")?.filter(|_| is_mapped) {
            self.role(&name);
        }
        Ok(())
    }

    /// The name of a ClusterRole.
    fn role(&mut self, found: &Found) {
        if found.is_empty() {
            return;
        }
        let host = self.splice.bytes(found);
        match self.state.view.mapping.seen_role(host) {
            SeenRole::Own(name) => self.splice.replace(found, name),
            SeenRole::Shared => {}
            SeenRole::Foreign => self.splice.replace(found, [FOREIGN_PREFIX.as_bytes(), host].concat().into()),
        }
    }

    fn texts(&self, range: &Range<usize>, number: Option<u32>) -> Result<Vec<String>, Unreadable> {
        let mut texts = Vec::new();
        let mut fields = self.splice.fields(range.clone());
        while let Some(found) = fields.next(|other| Some(other) == number)? {
            texts.push(String::from_utf8_lossy(self.splice.bytes(&found)).into_owned());
        }
        Ok(texts)
    }

    /// The field with the JSON key `key`, if it is not empty.
    fn given(&self, message: &Message, range: &Range<usize>, key: &str) -> Result<Option<Found>, Unreadable> {
        let Some(number) = message.number(key) else { return Ok(None) };
        Ok(self.splice.only(range, number)?.filter(|found| !found.is_empty()))
    }
}
