//! What one virtual cluster sees of its host.

use std::sync::Arc;

use kube_wire::selector::LabelSelector;

use super::filter::ProjectedObjects;
use crate::credential::Certificate;
use crate::review::OriginalAttributes;
use crate::same::Same;
use crate::{Guard, Mapping};

/// The settings of a view.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) mapping: Mapping,
    pub(super) guard: Arc<Guard>,
    pub(super) certificate: Option<Arc<Certificate>>,
    /// Whether the rows of tables are shown without their objects.
    pub(super) bare_rows: bool,
    pub(super) about: Option<Arc<OriginalAttributes>>,
    pub(super) projection: Option<Arc<ProjectedObjects>>,
    /// A selector for ClusterRoles and shared objects, by the labels that the client knows.
    pub(super) selector: Option<Arc<LabelSelector>>,
    /// Whether the agent owns the Pod Security labels of Namespaces, and those of clients are parked.
    pub(super) enforces_pod_security: bool,
}

// === impl Settings ===

impl Settings {
    /// Maps names and hides nothing.
    pub(super) fn new(mapping: Mapping) -> Self {
        Self {
            mapping,
            guard: Arc::default(),
            certificate: None,
            bare_rows: false,
            about: None,
            projection: None,
            selector: None,
            enforces_pod_security: false,
        }
    }
}

impl Same for Settings {
    fn is_same(&self, other: &Self) -> bool {
        let Self { mapping, guard, certificate, bare_rows, about, projection, selector, enforces_pod_security } = self;
        mapping.is_same(&other.mapping)
            && guard.is_same(&other.guard)
            && certificate.is_same(&other.certificate)
            && *bare_rows == other.bare_rows
            && about.is_same(&other.about)
            && projection.is_same(&other.projection)
            && selector.is_same(&other.selector)
            && *enforces_pod_security == other.enforces_pod_security
    }
}
