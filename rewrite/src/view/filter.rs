//! Which of the objects in an answer are shown.
//!
//! What decides is a name somewhere in the object. In a Table, whose rows hold only metadata unless asked for more, the
//! same name stands in a cell (`pkg/printers/internalversion/printers.go`).

use super::Verdict;
use super::object::Reader;
use crate::json::{Cursor, Edits, Malformed};
use crate::name::{HostNamespace, VirtualNamespace};

/// Which of the objects in an answer are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Those whose `metadata.namespace` belongs to the virtual cluster; none without one.
    ByNamespace,
    /// Those whose name is a namespace that belongs to the virtual cluster: for Namespaces.
    ByName,
    /// Those that are claimed in a namespace that belongs to the virtual cluster: for PersistentVolumes.
    ByClaim,
    /// Those of the virtual cluster's own nodes: for what has one.
    ByNode,
    /// Those that are the virtual cluster's own or every cluster's: for ClusterRoles.
    ByRole,
    /// All: the request named what it is about, or the host has chosen.
    Everything,
}

/// Objects in a namespace of the host that a virtual cluster is shown as if they were in one of its own. They are
/// beside those that [`Filter::ByNamespace`] lets pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lending {
    /// Where the host has them.
    pub from: HostNamespace,
    /// Where the virtual cluster sees them.
    pub to: VirtualNamespace,
    /// Which.
    pub what: Lent,
    /// Whether nothing is shown that is in another namespace than `to`.
    pub only: bool,
}

/// Which objects are lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// Those that are called like a node of the virtual cluster.
    NamedLikeNodes,
    /// Events about a node of the virtual cluster.
    AboutNodes,
    /// One, by its name.
    Named(&'static str),
}

// === impl Reader ===

impl Reader<'_> {
    /// The name of a namespace that decides whether the object is shown.
    pub(super) fn deciding(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let text = cursor.string()?;
        let lending = self.view.lending.as_deref();
        let name = match lending {
            Some(lending) if lending.from.as_ref() == &*text.bytes() => {
                self.is_lent = true;
                Some(&lending.to)
            }
            _ => {
                let name = self.view.mapping.member_or_late(&text.bytes());
                name.filter(|name| lending.is_none_or(|lending| !lending.only || lending.to == **name))
            }
        };
        match name {
            Some(name) => {
                // One foreign name among several (duplicate keys) is enough.
                self.verdict.get_or_insert(Verdict::Shown);
                edits.rename(text.range(), text.raw, &name.to_bytes());
            }
            None => self.verdict = Some(Verdict::Foreign),
        }
        Ok(())
    }

    /// The name of a node that decides.
    pub(super) fn of_node(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if self.filter != Filter::ByNode || cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let name = cursor.string()?;
        self.decide(self.view.mapping.has_node(&name.bytes()));
        Ok(())
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

    /// `metadata.name` of what may be lent by its name.
    pub(super) fn lent_name(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let Some(lending) = self.view.lending.as_deref() else { return cursor.skip() };
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        let name = cursor.string()?;
        self.is_to_lend |= match lending.what {
            Lent::NamedLikeNodes => self.view.mapping.has_node(&name.bytes()),
            Lent::Named(lent) => name.is(lent),
            Lent::AboutNodes => false,
        };
        Ok(())
    }

    /// What an Event is about.
    pub(super) fn event_object(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        if self.lends_events() && cursor.look_up("kind")?.is_some_and(|kind| kind.is("Node")) {
            let name = cursor.look_up("name")?;
            self.is_to_lend |= name.is_some_and(|name| self.view.mapping.has_node(&name.bytes()));
        }
        self.reference(cursor, edits)
    }

    /// A cell of the column `Claim`: `namespace/name`.
    pub(super) fn claim_cell(&mut self, cell: &str) {
        if self.filter == Filter::ByClaim {
            let namespace = cell.split('/').next().unwrap_or_default();
            self.decide(self.view.mapping.member_or_late(namespace.as_bytes()).is_some());
        }
    }

    /// A cell of the column `Node`.
    pub(super) fn node_cell(&mut self, cell: &str) {
        if self.filter == Filter::ByNode {
            self.decide(self.view.mapping.has_node(cell.as_bytes()));
        }
    }

    /// A cell of the column `Object`: `kind/name`, the kind in small letters.
    pub(super) fn object_cell(&mut self, cell: &str) {
        if self.lends_events() {
            let node = cell.strip_prefix("node/");
            self.is_to_lend |= node.is_some_and(|node| self.view.mapping.has_node(node.as_bytes()));
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
