//! Responses in one piece.

use std::sync::Arc;

use bytes::Bytes;
use kube_wire::selector::LabelSelector;

use super::error::Unreadable;
use super::filter::{Filter, ProjectedObjects, Verdict};
use super::object::Reader;
use super::protobuf;
use super::settings::Settings;
use super::status::is_status;
use super::table::{Columns, is_table};
use crate::credential::Certificate;
use crate::json::{Cursor, Edits, Malformed};
use crate::program::walk;
use crate::review::OriginalAttributes;
use crate::{Guard, Mapping, Program, Sink};

/// The mapping of responses for one virtual cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct View {
    settings: Settings,
}

// === impl View ===

impl View {
    /// A view that maps names and hides nothing.
    pub fn new(mapping: Mapping) -> Self {
        Self { settings: Settings::new(mapping) }
    }

    /// Shows the Pod Security labels that clients wrote, because a [level](crate::pod_security) is enforced.
    #[must_use]
    pub fn enforcing_pod_security(mut self) -> Self {
        self.settings.enforces_pod_security = true;
        self
    }

    /// Shows the rows of tables without their objects (`includeObject=None`). The host must send the objects anyway, because
    /// they determine which rows are visible.
    #[must_use]
    pub fn with_bare_rows(mut self) -> Self {
        self.settings.bare_rows = true;
        self
    }

    /// Hides `guard` in pod specifications.
    #[must_use]
    pub fn with_guard(mut self, guard: Arc<Guard>) -> Self {
        self.settings.guard = guard;
        self
    }

    /// Shows `certificate` as that of the cluster where the host publishes its own.
    #[must_use]
    pub fn with_certificate(mut self, certificate: Arc<Certificate>) -> Self {
        self.settings.certificate = Some(certificate);
        self
    }

    /// Restores the original attributes `about` in the response to an access review.
    #[must_use]
    pub fn with_original_attributes(mut self, about: OriginalAttributes) -> Self {
        self.settings.about = Some(Arc::new(about));
        self
    }

    /// Shows the projected objects of the host in addition to those of the virtual cluster.
    #[must_use]
    pub fn with_projected_objects(mut self, projection: ProjectedObjects) -> Self {
        self.settings.projection = Some(Arc::new(projection));
        self
    }

    /// Shows only those ClusterRoles or shared objects that `selector` matches. The host cannot select them: it has other
    /// labels for roles of the virtual cluster, and does not have the cluster's labels of shared objects.
    #[must_use]
    pub fn with_selector(mut self, selector: LabelSelector) -> Self {
        self.settings.selector = Some(Arc::new(selector));
        self
    }

    /// Uses `newer` names for the response to the same request.
    #[must_use]
    pub fn renewed(mut self, newer: Mapping) -> Self {
        self.settings.mapping = self.settings.mapping.renewed(newer);
        self
    }

    /// The names in use.
    pub fn mapping(&self) -> &Mapping {
        &self.settings.mapping
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
            Some(kind) if kind.is("Table") && is_table(&cursor)? => {
                return self.table(program, filter, body, sink);
            }
            _ => (program, filter),
        };
        let mut edits = Edits::new();
        let mut reader = Reader::new(&self.settings, filter);
        walk(&mut reader, program.root(), &mut cursor, &mut edits)?;
        cursor.finish()?;
        let verdict = reader.conclude(program, &cursor, &mut edits);
        if verdict == Verdict::Shown {
            edits.splice(body, 0..body.len(), sink);
        }
        Ok(verdict)
    }

    /// The same in protobuf, for clients that accept nothing else: an object or its metadata, a Status, or a whole list.
    pub fn protobuf(
        &self,
        program: &Program,
        filter: Filter,
        body: &Bytes,
        sink: &mut impl Sink,
    ) -> Result<Verdict, Unreadable> {
        protobuf::body(&self.settings, program, filter, body, sink)
    }

    /// For the streams.
    pub(super) fn into_settings(self) -> Settings {
        self.settings
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
        let verdict = Columns::default().table(&self.settings, program, filter, false, &mut cursor, &mut edits)?;
        cursor.finish()?;
        if verdict == Verdict::Shown {
            edits.splice(body, 0..body.len(), sink);
        }
        Ok(verdict)
    }
}
