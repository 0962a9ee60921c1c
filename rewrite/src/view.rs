//! Responses: maps bodies of the host for a virtual cluster.
//!
//! It replaces names of the host by virtual names, hides objects of others, and removes from each object what Atoll has added.
//! An unusual object is not an error: text that cannot be a name does not change.
//!
//! Reading order: [`View`], [`object`](self) (the places of an object), [`ListStream`], [`WatchStream`]; then the same in
//! protobuf.

use std::sync::Arc;

use bytes::Bytes;
use kube_wire::selector::LabelSelector;

use crate::json::{Cursor, Edits, Malformed};
use crate::program::walk;
use crate::review::AskedAbout;
use crate::{Guard, Mapping, Program, Sink};

mod binding;
mod carry;
mod condition;
mod filter;
mod last_applied;
mod list;
mod namespace;
mod node_ports;
mod object;
mod pod;
mod protobuf;
mod reference;
mod renamed;
mod review;
mod role;
mod rule;
mod selector;
mod shared;
mod table;
mod watch;

pub use crate::credential::Certificate;
pub use filter::{Filter, Lending, Lent};
pub use list::{ListStream, StreamError};
pub use protobuf::{DEFAULT_LIST_LIMIT, ProtoListStream, ProtoWatchStream, Unreadable};
pub use watch::{Arrived, Beginning, Bookmark, WatchStream};

use object::Reader;

/// The size limit of one object in memory: three times the limit of etcd for a request (`--max-request-bytes`, 1.5 MiB),
/// because an object is longer in JSON than in etcd.
pub const DEFAULT_ITEM_LIMIT: usize = 8 << 20;

/// The mapping of responses for one virtual cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct View {
    mapping: Mapping,
    guard: Arc<Guard>,
    certificate: Option<Arc<Certificate>>,
    /// Whether the rows of tables are shown without their objects.
    bare_rows: bool,
    about: Option<Arc<AskedAbout>>,
    lending: Option<Arc<Lending>>,
    /// A selector for ClusterRoles and shared objects, by the labels that the client knows.
    selecting: Option<Arc<LabelSelector>>,
    /// Whether the agent owns the Pod Security labels of Namespaces, and those of clients are parked.
    enforces_pod_security: bool,
}

/// Whether an object is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is, and was written to the sink.
    Shown,
    /// It does not belong to the virtual cluster. Nothing was written to the sink.
    Foreign,
    /// It is, but the client has not requested it. Nothing was written to the sink.
    Unselected,
    /// It was visible before. Nothing was written to the sink.
    Left,
}

// === impl View ===

impl View {
    /// A view that maps names and hides nothing.
    pub fn new(mapping: Mapping) -> Self {
        Self {
            mapping,
            guard: Arc::default(),
            certificate: None,
            bare_rows: false,
            about: None,
            lending: None,
            selecting: None,
            enforces_pod_security: false,
        }
    }

    /// Shows the Pod Security labels that clients wrote, because a [level](crate::pod_security) is enforced.
    #[must_use]
    pub fn enforcing_pod_security(mut self) -> Self {
        self.enforces_pod_security = true;
        self
    }

    /// Shows the rows of tables without their objects (`includeObject=None`). The host must send the objects anyway, because
    /// they determine which rows are visible.
    #[must_use]
    pub fn with_bare_rows(mut self) -> Self {
        self.bare_rows = true;
        self
    }

    /// Hides `guard` in pod specifications.
    #[must_use]
    pub fn hiding(mut self, guard: Arc<Guard>) -> Self {
        self.guard = guard;
        self
    }

    /// Shows `certificate` as that of the cluster where the host publishes its own.
    #[must_use]
    pub fn presenting(mut self, certificate: Arc<Certificate>) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Restores the original attributes `about` in the response to an access review.
    #[must_use]
    pub fn answering(mut self, about: AskedAbout) -> Self {
        self.about = Some(Arc::new(about));
        self
    }

    /// Shows the lent objects of the host in addition to those of the virtual cluster.
    #[must_use]
    pub fn lending(mut self, lending: Lending) -> Self {
        self.lending = Some(Arc::new(lending));
        self
    }

    /// Shows only those ClusterRoles or shared objects that `selector` matches. The host cannot select them: it has other
    /// labels for roles of the virtual cluster, and does not have the cluster's labels of shared objects.
    #[must_use]
    pub fn selecting(mut self, selector: LabelSelector) -> Self {
        self.selecting = Some(Arc::new(selector));
        self
    }

    /// The names in use.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// The response to any request but a list or watch: an object, a Status, or a Table of one object.
    pub fn object(
        &self,
        program: &Program,
        filter: Filter,
        body: &Bytes,
        sink: &mut impl Sink,
    ) -> Result<Verdict, Malformed> {
        let mut cursor = Cursor::new(body, 0, 0);
        let kind = cursor.look_up("kind")?;
        let status = Program::status();
        let (program, filter) = match kind {
            Some(kind) if kind.is("Status") && is_status(&cursor)? => (&status, Filter::Everything),
            Some(kind) if kind.is("Table") && table::is_table(&cursor)? => {
                return self.table(program, filter, body, sink);
            }
            _ => (program, filter),
        };
        let mut edits = Edits::new();
        let mut reader = Reader::new(self, filter);
        walk(&mut reader, program.root(), &mut cursor, &mut edits)?;
        cursor.finish()?;
        let verdict = reader.conclude(program, &cursor, &mut edits);
        if verdict == Verdict::Shown {
            edits.splice(body, 0..body.len(), sink);
        }
        Ok(verdict)
    }

    /// A whole Table. It is visible unless all of its rows belong to others.
    fn table(
        &self,
        program: &Program,
        filter: Filter,
        body: &Bytes,
        sink: &mut impl Sink,
    ) -> Result<Verdict, Malformed> {
        let mut cursor = Cursor::new(body, 0, 0);
        let mut edits = Edits::new();
        let verdict = table::Columns::default().table(self, program, filter, false, &mut cursor, &mut edits)?;
        cursor.finish()?;
        if verdict == Verdict::Shown {
            edits.splice(body, 0..body.len(), sink);
        }
        Ok(verdict)
    }
}

/// Whether the object at the cursor is a `metav1.Status`, and not a custom resource of that kind.
fn is_status(cursor: &Cursor<'_>) -> Result<bool, Malformed> {
    Ok(cursor.look_up("apiVersion")?.is_some_and(|version| version.is("v1")))
}

#[cfg(test)]
pub(crate) mod tests;
