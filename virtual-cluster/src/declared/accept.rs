//! Which declared virtual clusters are served.
//!
//! The configuration file comes first, then the objects that are served or have been served, then the oldest one. So a new object
//! never displaces a cluster that is served.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::follow::Objects;
use super::object::Declared;
use super::spec::{DeletionPolicy, Spec};
use crate::config::VirtualCluster;
use crate::mistakes::ending;

/// The clusters of the configuration file.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// The names of its virtual clusters.
    pub virtuals: BTreeSet<String>,
    /// The names of its physical clusters. They have no namespaces.
    pub physicals: BTreeSet<String>,
}

/// The clusters of objects that are served, by name. With each, the uid of its object.
pub type InForce = BTreeMap<String, (String, VirtualCluster)>;

/// Which objects are served.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accepted {
    /// The clusters.
    pub clusters: InForce,
    /// What becomes of each object, by name.
    pub verdicts: BTreeMap<String, Verdict>,
}

/// What becomes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is served.
    Served,
    /// It will be served when it has the finalizer.
    Unclaimed,
    /// Its specification is invalid. If it was served before, its last valid specification stays in force.
    Invalid {
        /// Why.
        reason: Arc<str>,
        /// Whether it was served before.
        is_served: bool,
    },
    /// Another cluster has its name, or a name with which namespaces of both could have the same names on the host.
    Conflict(Arc<str>),
    /// It is being deleted, and is no longer served.
    Ending(DeletionPolicy),
    /// It is being deleted, but the configuration file has a cluster with its name, which stays.
    Yielding,
}

/// The objects, and what becomes of them. The clusters of those that are served are being served.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// The objects.
    pub objects: Arc<Objects>,
    /// What becomes of each, by name.
    pub verdicts: HashMap<String, Verdict>,
}

// === impl Verdict ===

impl Verdict {
    /// Whether the agent serves the cluster of the object, or can still serve it.
    pub(super) fn is_served(&self) -> bool {
        matches!(self, Self::Served | Self::Unclaimed | Self::Invalid { is_served: true, .. })
    }
}

/// Decides about all objects. `before` are the clusters of objects that are served.
pub fn accept(others: &Others, before: &InForce, objects: &Objects) -> Accepted {
    let mut accepted = Accepted::default();
    let mut names: HashSet<&str> = others.virtuals.iter().map(String::as_str).collect();
    let mut oldest: Vec<&Declared> = objects.values().map(Arc::as_ref).collect();
    // Timestamps of the API server have one format, which sorts by time. Several objects can be created within a second.
    oldest.sort_by_key(|object| (!object.has_finalizer(), &object.metadata.creation_timestamp, &object.metadata.name));
    // What an object that is being deleted has on the host still has its names.
    names
        .extend(oldest.iter().filter(|object| object.is_ending() && object.has_finalizer()).map(|object| name(object)));
    for object in oldest {
        let verdict = match taken(others, name(object)) {
            _ if object.is_ending() && others.virtuals.contains(name(object)) => Verdict::Yielding,
            _ if object.is_ending() => Verdict::Ending(object.deletion_policy()),
            Some(taken) => Verdict::Conflict(taken.into()),
            None => match meets(name(object), &names) {
                Some(other) => Verdict::Conflict(meeting(name(object), other).into()),
                None => decide(object, before, &mut accepted.clusters),
            },
        };
        if !matches!(verdict, Verdict::Conflict(_)) {
            names.insert(name(object));
        }
        accepted.verdicts.insert(object.metadata.name.clone(), verdict);
    }
    accepted
}

/// Decides about an object whose name is free.
fn decide(object: &Declared, before: &InForce, clusters: &mut InForce) -> Verdict {
    let Declared { metadata, .. } = object;
    let known = before.get(&metadata.name).filter(|(uid, _)| *uid == metadata.uid);
    let (cluster, verdict) = match (object.spec(), known) {
        // One that is served stays served if somebody removes the finalizer, until it has it again.
        (Ok(Spec { cluster, .. }), _) if object.has_finalizer() => (Some(cluster), Verdict::Served),
        (Ok(Spec { cluster, .. }), known) => (known.map(|_| cluster), Verdict::Unclaimed),
        (Err(error), known) => {
            let reason = error.to_string().into();
            (known.map(|(_, cluster)| cluster.clone()), Verdict::Invalid { reason, is_served: known.is_some() })
        }
    };
    clusters.extend(cluster.map(|cluster| (metadata.name.clone(), (metadata.uid.clone(), cluster))));
    verdict
}

fn name(object: &Declared) -> &str {
    &object.metadata.name
}

fn taken(others: &Others, name: &str) -> Option<String> {
    let kind = if others.virtuals.contains(name) {
        "virtual"
    } else if others.physicals.contains(name) {
        "physical"
    } else {
        return None;
    };
    Some(format!(
        "the agent's configuration file has a {kind} cluster {name}, which is served instead; remove it there, or delete this \
         VirtualCluster"
    ))
}

/// A virtual cluster whose namespaces could have the same names on the host.
fn meets<'n>(name: &'n str, names: &HashSet<&'n str>) -> Option<&'n str> {
    let ends_with_it = |other: &&str| ending(other, |ending| ending == name).is_some();
    ending(name, |ending| names.contains(ending)).or_else(|| names.iter().copied().find(ends_with_it))
}

fn meeting(name: &str, other: &str) -> String {
    let (longer, shorter) = if name.len() > other.len() { (name, other) } else { (other, name) };
    format!(
        "{longer} ends with `-{shorter}`, and {other} is a virtual cluster of this host too, so namespaces of both could have \
         the same name on the host; delete this VirtualCluster, and create one with another name"
    )
}

#[cfg(test)]
mod tests;
