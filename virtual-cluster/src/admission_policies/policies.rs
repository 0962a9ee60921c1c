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
mod revisions;
mod roles;
mod services;
mod statuses;
mod vocabulary;

use std::collections::BTreeSet;

use super::policy::{Kind, Object};
use super::served::Served;

/// All policies, in the order in which they are written. `node_labels` are the keys by which virtual clusters select
/// nodes.
pub(super) fn all(served: Served, node_labels: &BTreeSet<String>) -> Vec<Object> {
    let mut objects = Vec::new();
    if let Some(version) = served.validating {
        for (name, spec) in [
            ("namespaces.atoll.dev", namespaces::members()),
            ("roots.atoll.dev", namespaces::roots()),
            ("nodes.atoll.dev", nodes::named()),
            ("node-labels.atoll.dev", nodes::labels(node_labels)),
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
