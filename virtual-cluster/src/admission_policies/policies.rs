//! The policies: one set for all virtual clusters.
//!
//! A policy reads the settings of a virtual cluster from the Namespace (see
//! [`annotations`](crate::namespaces::annotations)). Only the host's control plane and its administrators may write
//! what a policy protects. Nobody else may, neither through the endpoint nor with a token that is used directly at the
//! host. `tests/real` tests the expressions on real API servers.

mod bindings;
mod claims;
mod customs;
mod namespaces;
mod nodes;
mod pods;
mod quotas;
mod revisions;
mod roles;
mod services;
mod statuses;
mod vocabulary;

use std::collections::{BTreeMap, BTreeSet};

use rewrite::ClusterName;

use super::policy::{Kind, Object};
use super::served::Served;
use crate::namespaces::Full;

/// What the policies must know about the virtual clusters of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The keys of the labels by which they select nodes.
    pub(super) node_labels: BTreeSet<String>,
    /// The limits that they have reached.
    pub(super) full: BTreeMap<ClusterName, Full>,
}

/// All policies, in the order in which they are written.
pub(super) fn all(served: Served, known: &Known) -> Vec<Object> {
    let mut objects = Vec::new();
    if let Some(version) = served.validating {
        for (name, spec) in [
            // First, because it changes while the agent runs, and objects are created until it is in force.
            ("quotas.atoll.dev", quotas::kept(&known.full)),
            ("namespaces.atoll.dev", namespaces::members()),
            ("roots.atoll.dev", namespaces::roots()),
            ("nodes.atoll.dev", nodes::named()),
            ("node-labels.atoll.dev", nodes::labels(&known.node_labels)),
            ("pods.atoll.dev", pods::required()),
            ("revisions.atoll.dev", revisions::read()),
            ("statuses.atoll.dev", statuses::kept()),
            ("services.atoll.dev", services::addressed(served.has_cidr)),
            ("claims.atoll.dev", claims::free()),
            ("bindings.atoll.dev", bindings::own()),
            ("customs.atoll.dev", customs::kept()),
        ] {
            objects.extend(Kind::Validating.objects(version, name, &spec));
        }
    }
    if let Some(version) = served.mutating {
        for (name, spec) in [("pods.atoll.dev", pods::added()), ("roles.atoll.dev", roles::bounded())] {
            objects.extend(Kind::Mutating.objects(version, name, &spec));
        }
    }
    objects
}
