//! Cells of a Table, which the host derived from the object of their row.

use super::super::filter::Filter;
use super::super::object::Reader;
use super::super::settings::Settings;
use crate::json::{Cursor, Edits, Malformed, Text, unquoted};
use crate::{Guard, Program};

/// Columns that show `namespace/name`, subjects or messages (`pkg/printers/internalversion/printers.go`, and
/// kube-aggregator's table for `APIService`).
const TEXT_COLUMNS: [&str; 6] = ["Users", "Groups", "ServiceAccounts", "Requestor", "Service", "Message"];

/// The column of a `DaemonSet` that shows the node selector of its template.
const NODE_SELECTOR_COLUMN: &str = "Node Selector";

/// How an empty set of labels is printed (`FormatLabels` in apimachinery's `pkg/apis/meta/v1/helpers.go`).
const NO_LABELS: &str = "<none>";

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// The object's own name.
    Name,
    /// `kind/name` of the role that a binding refers to.
    Role,
    Text,
    /// Labels as `pkg/labels` prints them (`FormatLabels`): `a=b,c=d`, or [`NO_LABELS`].
    NodeSelector,
    /// `namespace/name` of the claim of the object.
    Claim,
    /// `resource/namespace/name` of the object's owner.
    Parent,
    /// The node of the object.
    Node,
    /// `kind/name` of the object of an Event.
    Object,
    Other,
}

// === impl Column ===

impl Column {
    /// By its name.
    pub(super) fn of(name: Option<&Text<'_>>) -> Self {
        match name {
            Some(name) if name.is("Name") => Self::Name,
            Some(name) if name.is("Role") => Self::Role,
            Some(name) if name.is(NODE_SELECTOR_COLUMN) => Self::NodeSelector,
            Some(name) if name.is("Claim") => Self::Claim,
            Some(name) if name.is("ParentRef") => Self::Parent,
            Some(name) if name.is("Node") => Self::Node,
            Some(name) if name.is("Object") => Self::Object,
            Some(name) if TEXT_COLUMNS.iter().any(|column| name.is(column)) => Self::Text,
            _ => Self::Other,
        }
    }

    /// Shows the cell that is the next value. `reader` reads the object of its row.
    pub(super) fn cell(
        self,
        view: &Settings,
        reader: &mut Reader<'_>,
        program: &Program,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Malformed> {
        let names = reader.names();
        match (self, cursor.peek()?) {
            (Self::Name, b'"') if program.is_of_namespaces() => names.namespace(cursor, edits)?,
            (Self::Name, b'"') if program.is_of_roles() => drop(names.role(cursor, edits)?),
            (Self::Name, b'"') if program.is_of_renamed() => drop(names.custom_object(cursor, edits)?),
            (Self::Role, b'"') if program.is_of_bindings() => names.message(cursor, edits)?,
            (Self::NodeSelector, b'"') if program.has_guard() => node_selector(&view.guard, &cursor.string()?, edits),
            (Self::Claim, b'"') => claim(view, reader, &cursor.string()?, edits),
            (Self::Parent, b'"') => parent(view, reader, &cursor.string()?, edits),
            (Self::Node, b'"') => reader.owner_fields().decision.by_node(cursor.string()?.decode().as_bytes()),
            (Self::Object, b'"') => object(reader, &cursor.string()?.decode()),
            (Self::Text, b'"') => names.message(cursor, edits)?,
            _ => cursor.skip()?,
        }
        Ok(())
    }
}

/// `namespace/name`.
fn claim(view: &Settings, reader: &mut Reader<'_>, cell: &Text<'_>, edits: &mut Edits) {
    let printed = cell.decode();
    let namespace = printed.split('/').next().unwrap_or_default();
    reader.owner_fields().decision.by_claim(namespace.as_bytes());
    view.mapping.messages().edit(cell, edits);
}

/// `resource/namespace/name`.
fn parent(view: &Settings, reader: &mut Reader<'_>, cell: &Text<'_>, edits: &mut Edits) {
    let decision = reader.owner_fields().decision;
    let printed = cell.decode();
    let mut parts = printed.splitn(3, '/').filter(|_| decision.filter() == Filter::ByParent);
    let (Some(resource), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        return view.mapping.messages().edit(cell, edits);
    };
    decision.note_name(name.as_bytes());
    if let Some(shown) = decision.by_namespace(namespace.as_bytes()) {
        let shown = String::from_utf8_lossy(&shown);
        edits.replace(cell.range(), unquoted(&format!("{resource}/{shown}/{name}")));
    }
}

/// `kind/name`, with the kind in lower case.
fn object(reader: &mut Reader<'_>, cell: &str) {
    if let Some(node) = cell.strip_prefix("node/") {
        reader.owner_fields().decision.note_event_about(node.as_bytes());
    }
}

/// Removes the guarded keys from printed labels.
fn node_selector(guard: &Guard, text: &Text<'_>, edits: &mut Edits) {
    let printed = text.decode();
    let is_hidden = |term: &&str| {
        let key = term.split_once('=').map_or(*term, |(key, _)| key);
        guard.entries().iter().any(|entry| entry.key == key)
    };
    if !printed.split(',').any(|term| is_hidden(&term)) {
        return;
    }
    let kept: Vec<&str> = printed.split(',').filter(|term| !is_hidden(term)).collect();
    let shown = if kept.is_empty() { NO_LABELS.to_owned() } else { kept.join(",") };
    edits.replace(text.range(), unquoted(&shown));
}
