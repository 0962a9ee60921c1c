//! How the bodies of one request are mapped.

use std::sync::Arc;

use super::form::Form;
use super::names::Names;
use super::namespace_rules::NamespaceRules;
use crate::name::{CLUSTER_LABEL, ClusterName, NAMESPACE_LABEL, VirtualNamespace};
use crate::{Guard, Mapping};

/// The settings of a request.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) names: Names,
    pub(super) guard: Arc<Guard>,
    pub(super) form: Form,
    pub(super) rules: Arc<NamespaceRules>,
    /// Groups that are added to a review.
    pub(super) groups: Arc<[String]>,
    /// The name of a new Namespace that has only `generateName`.
    pub(super) made: Option<VirtualNamespace>,
}

// === impl Settings ===

impl Settings {
    pub(super) fn new(mapping: Mapping) -> Self {
        Self {
            names: Names { mapping, own: None, root: None },
            guard: Arc::default(),
            form: Form::Whole,
            rules: Arc::default(),
            groups: Arc::default(),
            made: None,
        }
    }

    /// The virtual cluster.
    pub(super) fn cluster(&self) -> &ClusterName {
        self.names.mapping.cluster()
    }

    /// Labels that the Namespace must have: those that assign it to the virtual cluster, and its protected ones.
    pub(super) fn required_labels(&self, name: Option<&VirtualNamespace>) -> Vec<(String, String)> {
        let mut labels = Vec::new();
        if let Some(name) = name {
            labels.push((CLUSTER_LABEL.to_owned(), self.names.mapping.cluster().to_string()));
            labels.push((NAMESPACE_LABEL.to_owned(), name.to_string()));
        }
        labels.extend_from_slice(&self.rules.labels);
        labels
    }
}
