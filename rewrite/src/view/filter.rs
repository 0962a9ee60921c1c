//! Decides which objects of a response are visible.
//!
//! A name in the object determines it. In a Table, whose rows contain only metadata by default, a cell has the same name
//! (`pkg/printers/internalversion/printers.go`).

use bytes::Bytes;

use super::Verdict;
use super::object::{Reader, unquoted};
use crate::json::{Cursor, Edits, Malformed, Text};
use crate::name::{HostNamespace, VirtualNamespace};

/// Which objects of a response are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Those whose `metadata.namespace` belongs to the virtual cluster, and none without a namespace.
    ByNamespace,
    /// Those whose name is a namespace that belongs to the virtual cluster: for Namespaces.
    ByName,
    /// Those that are claimed in a namespace that belongs to the virtual cluster: for PersistentVolumes.
    ByClaim,
    /// Those of the virtual cluster's own nodes: for objects with a node.
    ByNode,
    /// Those whose parent is in a namespace of the virtual cluster: for IPAddresses.
    ByParent,
    /// Those that Kubernetes itself creates and maintains, and that nobody has changed: for FlowSchemas and
    /// PriorityLevelConfigurations.
    Autoupdated,
    /// Those of the virtual cluster, and those that every cluster has: for ClusterRoles, and for cluster-scoped custom objects.
    ByRole,
    /// Those of the host's operator, and those with an overlay of the virtual cluster: for shared objects.
    Shared,
    /// All: the request names the object, or the host has selected the objects.
    Everything,
    /// None.
    Nothing,
}

/// Lent objects: objects in a namespace of the host that a virtual cluster sees as if they were in one of its own. They are
/// visible in addition to those of [`Filter::ByNamespace`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lending {
    /// The namespace on the host.
    pub from: HostNamespace,
    /// The namespace in the virtual cluster.
    pub to: VirtualNamespace,
    /// Which.
    pub what: Lent,
    /// Whether objects in other namespaces than `to` are hidden.
    pub only: bool,
}

/// Which objects are lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// Those with the name of a node of the virtual cluster.
    NamedLikeNodes,
    /// Events about a node of the virtual cluster.
    AboutNodes,
    /// One object, by its name.
    Named(&'static str),
}

// === impl Reader ===

impl Reader<'_> {
    /// The name of a namespace that determines whether the object is visible.
    pub(super) fn deciding(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let text = cursor.string()?;
        if let Some(name) = self.decide_by(&text.bytes()) {
            edits.rename(text.range(), text.raw, &name);
        }
        Ok(())
    }

    /// Decides by the host name of a namespace, and returns how it is shown.
    pub(super) fn decide_by(&mut self, host: &[u8]) -> Option<Bytes> {
        let lending = self.view.lending.as_deref();
        let name = match lending {
            Some(lending) if lending.from.as_ref() == host => {
                self.is_lent = true;
                Some(&lending.to)
            }
            _ => {
                let name = self.view.mapping.namespaces.member_or_recently_deleted(host);
                name.filter(|name| lending.is_none_or(|lending| !lending.only || lending.to == **name))
            }
        };
        match name {
            // One foreign name among several (duplicate keys) is enough.
            Some(_) => drop(self.verdict.get_or_insert(Verdict::Shown)),
            None => self.verdict = Some(Verdict::Foreign),
        }
        name.map(VirtualNamespace::to_bytes)
    }

    /// The result so far.
    pub(super) fn verdict(&self) -> Verdict {
        match (self.role_verdict().or(self.verdict), self.filter) {
            (_, Filter::Nothing) => Verdict::Foreign,
            _ if self.is_lent && !self.is_to_lend => Verdict::Foreign,
            (Some(verdict), _) => verdict,
            (None, Filter::Everything) => Verdict::Shown,
            // An object without an owner is hidden.
            (
                None,
                Filter::ByNamespace
                | Filter::ByName
                | Filter::ByClaim
                | Filter::ByNode
                | Filter::ByParent
                | Filter::Autoupdated
                | Filter::ByRole
                | Filter::Shared,
            ) => Verdict::Foreign,
        }
    }

    /// The name of a node that determines it.
    pub(super) fn of_node(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if self.filter != Filter::ByNode || cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let name = cursor.string()?;
        self.decide_by_node(&name.bytes());
        Ok(())
    }

    /// Decides by the name of a node, if the filter uses it.
    pub(super) fn decide_by_node(&mut self, name: &[u8]) {
        if self.filter == Filter::ByNode {
            self.decide(self.view.mapping.has_node(name));
        }
    }

    /// `claimRef`.
    pub(super) fn claim(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if self.filter != Filter::ByClaim {
            return self.reference(cursor, edits);
        }
        self.members(cursor, edits, |reader, key, cursor, edits| match key {
            "namespace" => reader.deciding(cursor, edits),
            _ => cursor.skip(),
        })
    }

    /// `parentRef` of an IPAddress.
    pub(super) fn parent(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if self.filter != Filter::ByParent {
            return self.reference(cursor, edits);
        }
        self.members(cursor, edits, |reader, key, cursor, edits| match key {
            "namespace" => reader.deciding(cursor, edits),
            "name" => reader.lent_name(cursor),
            _ => cursor.skip(),
        })
    }

    /// The annotation that shows whether Kubernetes maintains the object's default specification
    /// (`AutoUpdateAnnotationKey` in k8s.io/api `flowcontrol/v1/types.go`).
    pub(super) fn autoupdate_spec(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        self.decide_by_autoupdate(&cursor.string()?.bytes());
        Ok(())
    }

    /// Decides by that annotation, if the filter uses it.
    pub(super) fn decide_by_autoupdate(&mut self, value: &[u8]) {
        if self.filter == Filter::Autoupdated {
            self.decide(value == b"true");
        }
    }

    /// `metadata.name` of an object that can be lent by its name.
    pub(super) fn lent_name(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if self.view.lending.is_none() || cursor.peek()? != b'"' {
            return cursor.skip();
        }
        self.note_name(&cursor.string()?.bytes());
        Ok(())
    }

    /// Records the name of an object that can be lent by its name.
    pub(super) fn note_name(&mut self, name: &[u8]) {
        let Some(lending) = self.view.lending.as_deref() else { return };
        self.is_to_lend |= match lending.what {
            Lent::NamedLikeNodes => self.view.mapping.has_node(name),
            Lent::Named(lent) => name == lent.as_bytes(),
            Lent::AboutNodes => false,
        };
    }

    /// Records the node of an Event.
    pub(super) fn note_event_about(&mut self, node: &[u8]) {
        self.is_to_lend |= self.lends_events() && self.view.mapping.has_node(node);
    }

    /// The object of an Event.
    pub(super) fn event_object(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if self.lends_events()
            && cursor.look_up("kind")?.is_some_and(|kind| kind.is("Node"))
            && let Some(name) = cursor.look_up("name")?
        {
            self.note_event_about(&name.bytes());
        }
        self.reference(cursor, edits)
    }

    /// A cell of the column `Claim`: `namespace/name`.
    pub(super) fn claim_cell(&mut self, cell: &str) {
        if self.filter == Filter::ByClaim {
            let namespace = cell.split('/').next().unwrap_or_default();
            self.decide(self.view.mapping.namespaces.member_or_recently_deleted(namespace.as_bytes()).is_some());
        }
    }

    /// A cell of the column `ParentRef`: `resource/namespace/name`.
    pub(super) fn parent_cell(&mut self, cell: &Text<'_>, edits: &mut Edits) {
        let printed = cell.decode();
        let mut parts = printed.splitn(3, '/').filter(|_| self.filter == Filter::ByParent);
        let (Some(resource), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return self.view.mapping.messages().edit(cell, edits);
        };
        self.note_name(name.as_bytes());
        if let Some(shown) = self.decide_by(namespace.as_bytes()) {
            let shown = String::from_utf8_lossy(&shown);
            edits.replace(cell.range(), unquoted(&format!("{resource}/{shown}/{name}")));
        }
    }

    /// A cell of the column `Node`.
    pub(super) fn node_cell(&mut self, cell: &str) {
        self.decide_by_node(cell.as_bytes());
    }

    /// A cell of the column `Object`: `kind/name`, with the kind in lower case.
    pub(super) fn object_cell(&mut self, cell: &str) {
        if let Some(node) = cell.strip_prefix("node/") {
            self.note_event_about(node.as_bytes());
        }
    }

    fn lends_events(&self) -> bool {
        self.view.lending.as_ref().is_some_and(|lending| lending.what == Lent::AboutNodes)
    }

    fn decide(&mut self, own: bool) {
        if own {
            self.verdict.get_or_insert(Verdict::Shown);
        } else {
            self.verdict = Some(Verdict::Foreign);
        }
    }
}

#[cfg(test)]
mod tests;
