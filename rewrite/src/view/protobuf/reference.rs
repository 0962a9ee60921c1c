//! References to other objects.

use std::ops::Range;

use super::super::decision::Decision;
use super::super::error::Unreadable;
use super::super::filter::Filter;
use super::names::Names;
use crate::program::Place;
use crate::protobuf::Message;
use crate::review::OriginalAttributes;

/// Shows messages with the name, and perhaps the namespace, of another object.
pub(super) struct References<'r, 'v, 'b> {
    pub(super) names: &'r mut Names<'v, 'b>,
    pub(super) decision: &'r mut Decision<'v>,
    /// The attributes that the client sent, if the object is the response to an access review.
    pub(super) about: Option<&'r OriginalAttributes>,
}

/// The type of the object in a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Namespace,
    Identity,
    Other,
}

// === impl References ===

impl References<'_, '_, '_> {
    pub(super) fn show(mut self, place: Place, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        match place {
            Place::Claim if self.decision.filter() == Filter::ByClaim => self.owner_namespace(message, range),
            Place::ParentReference if self.decision.filter() == Filter::ByParent => {
                self.decision.note_name(self.names.text(message, range, "name")?);
                self.owner_namespace(message, range)
            }
            Place::Reference if self.is_to_custom_object(message, range)? => {
                if let Some(name) = self.names.field_at(message, range, "name")? {
                    self.names.custom_object(&name);
                }
                Ok(())
            }
            Place::Reference | Place::BindingTarget | Place::BoundObject | Place::Claim | Place::ParentReference => {
                self.referred(message, range)
            }
            Place::EventObject => {
                if self.names.text(message, range, "kind")? == b"Node" {
                    self.decision.note_event_about(self.names.text(message, range, "name")?);
                }
                self.referred(message, range)
            }
            Place::Subject => self.subject(message, range),
            Place::ResourceAttributes => self.resource_attributes(message, range),
            Place::RoleRef => self.role_ref(message, range),
            place => unreachable!("no table has a message that is a {place:?}, as a test shows"),
        }
    }

    /// A reference to the owner, which determines whether the object is visible.
    fn owner_namespace(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        if let Some(namespace) = self.names.field_at(message, range, "namespace")? {
            self.names.owner_namespace(self.decision, &namespace);
        }
        Ok(())
    }

    fn is_to_custom_object(&self, message: &Message, range: &Range<usize>) -> Result<bool, Unreadable> {
        let [version, kind] = ["apiVersion", "kind"].map(|key| self.names.text(message, range, key));
        let (version, kind) = (String::from_utf8_lossy(version?), String::from_utf8_lossy(kind?));
        Ok(self.names.mapping.objects.renames(&version, &kind))
    }

    /// `kind`, `name` and `namespace`, as in an owner reference or the object of an Event.
    fn referred(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let to_namespace = self.names.text(message, range, "kind")? == b"Namespace";
        self.named(if to_namespace { Named::Namespace } else { Named::Other }, message, range)
    }

    fn subject(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let kind = self.names.text(message, range, "kind")?;
        let is_identity = matches!(kind, b"User" | b"Group");
        self.named(if is_identity { Named::Identity } else { Named::Other }, message, range)
    }

    fn named(&mut self, named: Named, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        if let Some(namespace) = self.names.field_at(message, range, "namespace")? {
            self.names.namespace(&namespace);
        }
        match (self.names.field_at(message, range, "name")?, named) {
            (Some(name), Named::Namespace) => self.names.namespace(&name),
            (Some(name), Named::Identity) => self.names.identity(&name),
            (_, Named::Other) | (None, _) => {}
        }
        Ok(())
    }

    /// `resource`, `name` and `namespace`. Reverts the changes of [`request`](crate::request).
    fn resource_attributes(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let resource = self.names.text(message, range, "resource")?;
        let (to_namespace, to_role) = (resource == b"namespaces", resource == b"clusterroles");
        let Some(about) = self.about else {
            return self.named(if to_namespace { Named::Namespace } else { Named::Other }, message, range);
        };
        if let Some(namespace) = self.names.field_at(message, range, "namespace")? {
            let original = about.namespace.clone().unwrap_or_default();
            self.names.splice.replace(&namespace, original.into());
        }
        if let (Some(name), Some(original)) = (self.names.field_at(message, range, "name")?, about.name.clone())
            && (to_namespace || to_role)
        {
            self.names.splice.replace(&name, original.into());
        }
        Ok(())
    }

    /// `roleRef` of a binding.
    fn role_ref(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let is_mapped = self.names.text(message, range, "kind")? == b"ClusterRole";
        if let Some(name) = self.names.field_at(message, range, "name")?.filter(|_| is_mapped) {
            self.names.role(&name);
        }
        Ok(())
    }
}
