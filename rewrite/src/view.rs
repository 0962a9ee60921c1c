//! Responses: what the host answers, as the virtual cluster sees it.
//!
//! Names of the host become virtual names, objects of others are left out, and what Atoll put into an object is taken
//! out again. Nothing here fails because an object is unusual: what cannot be a name stays as it is.
//!
//! Reading order: [`View`], [`object`](self) (what happens at each place), [`ListStream`], [`WatchStream`]; then the same
//! in protobuf.

use std::sync::Arc;

use bytes::Bytes;
use kube_wire::selector::LabelSelector;

use crate::json::{Cursor, Edits, Malformed};
use crate::program::walk;
use crate::request::AskedAbout;
use crate::{Guard, Mapping, Program, Sink};

mod binding;
mod carry;
mod condition;
mod credential;
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

pub use credential::Certificate;
pub(crate) use credential::Credential;
pub use filter::{Filter, Lending, Lent};
pub use list::{ListStream, StreamError};
pub use protobuf::{DEFAULT_LIST_LIMIT, ProtoListStream, ProtoWatchStream, Unreadable};
pub use watch::{Beginning, WatchStream};

use object::Reader;

/// The most bytes of one object that are kept: what etcd takes in a request (`--max-request-bytes`, 1.5 MiB) three
/// times over, since an object is longer in JSON than as it is stored.
pub const DEFAULT_ITEM_LIMIT: usize = 8 << 20;

/// How responses are shown to one virtual cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct View {
    mapping: Mapping,
    guard: Arc<Guard>,
    certificate: Option<Arc<Certificate>>,
    /// Whether the rows of tables are shown without their objects.
    bare_rows: bool,
    about: Option<Arc<AskedAbout>>,
    lending: Option<Arc<Lending>>,
    /// What is shown of cluster roles and of shared objects, by the labels that the client knows.
    selecting: Option<Arc<LabelSelector>>,
    /// Whether the agent owns the Pod Security labels of Namespaces, and those of clients are parked.
    enforces_pod_security: bool,
}

/// Whether an object is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is, and has gone to the sink.
    Shown,
    /// It is not the virtual cluster's; nothing has gone to the sink.
    Foreign,
    /// It is, and the client has not asked for it; nothing has gone to the sink.
    Unselected,
    /// It was; nothing has gone to the sink.
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

    /// Shows the rows of tables without their objects (`includeObject=None`). The host has to send them all the same,
    /// since a row is shown if its object is.
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

    /// Shows `certificate` as the cluster's, where the host publishes its own.
    #[must_use]
    pub fn presenting(mut self, certificate: Arc<Certificate>) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Puts what an access review asked `about` back into its answer.
    #[must_use]
    pub fn answering(mut self, about: AskedAbout) -> Self {
        self.about = Some(Arc::new(about));
        self
    }

    /// Shows objects that the host lends beside those that are the virtual cluster's.
    #[must_use]
    pub fn lending(mut self, lending: Lending) -> Self {
        self.lending = Some(Arc::new(lending));
        self
    }

    /// Shows only those cluster roles or shared objects that `selector` matches. The host cannot be asked for them: it knows
    /// own roles by other labels than those that every cluster has, and the labels of shared objects not at all.
    #[must_use]
    pub fn selecting(mut self, selector: LabelSelector) -> Self {
        self.selecting = Some(Arc::new(selector));
        self
    }

    /// The names in use.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// The answer to anything but a list or watch: an object, a Status, or a Table of one object.
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

    /// A Table in one piece; shown unless its rows were all of others.
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

/// Whether the object in front of the cursor is a `metav1.Status`, and no custom resource of that kind.
fn is_status(cursor: &Cursor<'_>) -> Result<bool, Malformed> {
    Ok(cursor.look_up("apiVersion")?.is_some_and(|version| version.is("v1")))
}

#[cfg(test)]
pub(crate) mod tests;
