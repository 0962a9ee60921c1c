//! The part of a Namespace object that the index keeps.

use std::sync::Arc;

use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL, ROOT_LABEL};
use rewrite::{ClusterName, HostNamespace, VirtualNamespace};
use serde_json::Value;

use super::annotations::Annotations;
use super::full::Full;
use crate::pod_security::Posture;

/// The annotation of a root namespace with the uid of `kube-system` that clients of its virtual cluster see. A restore sets it, so
/// that the virtual cluster keeps its identity.
pub const IDENTITY: &str = "atoll.dev/identity";

/// A uid of Kubernetes has 36 characters.
const MAX_UID: usize = 64;

/// One namespace of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) version: Version,
    pub(super) uid: Arc<str>,
    pub(super) phase: Phase,
    /// The virtual cluster and the virtual name in the labels, if the host name matches them.
    pub(super) claim: Option<(ClusterName, VirtualNamespace)>,
    /// The virtual cluster of which it is the root namespace.
    pub(super) root_of: Option<ClusterName>,
    pub(super) posture: Posture,
    /// Its annotations for the admission policies.
    pub(super) annotations: Annotations,
    /// The uid of `kube-system` that this root namespace gives its virtual cluster.
    pub(super) identity: Option<Arc<str>>,
    /// The limits that the virtual cluster of this root namespace has reached.
    pub(super) full: Option<Box<(ClusterName, Full)>>,
}

/// What is known about a deleted namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gone {
    /// `None` if the deletion was not observed.
    pub(super) version: Option<Version>,
    pub(super) uid: Option<Arc<str>>,
}

/// `metadata.resourceVersion` as a number: etcd's revision, which orders the states of one object (KEP-5504 guarantees
/// that). A version that is not a number counts as older than all others, so it never hides a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub(super) u64);

/// Whether a namespace is being deleted (`NamespacePhase` in core/v1/types.go).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is not being deleted.
    Active,
    /// It is being deleted, so nothing can be created in it.
    Terminating,
}

/// The object is not a valid Namespace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a Namespace without a DNS label as its metadata.name, or without metadata.uid")]
pub struct NotANamespace;

// === impl Record ===

/// Reads a whole Namespace.
pub(super) fn parse(namespace: &Value) -> Result<(HostNamespace, Record), NotANamespace> {
    let metadata = &namespace["metadata"];
    let host = name(metadata)?;
    let uid = metadata["uid"].as_str().ok_or(NotANamespace)?.into();
    // The API server sets the timestamp before the namespace controller writes the phase.
    let is_ending = !metadata["deletionTimestamp"].is_null() || namespace["status"]["phase"] == "Terminating";
    let phase = if is_ending { Phase::Terminating } else { Phase::Active };
    let claim = claim(&host, &metadata["labels"]);
    let (version, annotations) = (Version::of(metadata).unwrap_or_default(), Annotations::of(namespace));
    let posture = Posture::of(&metadata["labels"]);
    let root_of = metadata["labels"][ROOT_LABEL].as_str().filter(|_| host.is_root());
    let root_of = root_of.and_then(|cluster| ClusterName::new(cluster).ok());
    let full = Full::of(&host, namespace).map(Box::new);
    let identity = metadata["annotations"][IDENTITY].as_str().filter(|uid| root_of.is_some() && is_uid(uid));
    let identity = identity.map(Arc::from);
    Ok((host, Record { version, uid, phase, claim, root_of, posture, annotations, identity, full }))
}

/// Whether it has the form of a uid: it becomes a part of responses.
fn is_uid(text: &str) -> bool {
    (1..=MAX_UID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Reads the metadata of a deleted Namespace.
pub(super) fn gone(namespace: &Value) -> Result<(HostNamespace, Gone), NotANamespace> {
    let metadata = &namespace["metadata"];
    let gone = Gone { version: Version::of(metadata), uid: metadata["uid"].as_str().map(Into::into) };
    Ok((name(metadata)?, gone))
}

fn name(metadata: &Value) -> Result<HostNamespace, NotANamespace> {
    HostNamespace::new(metadata["name"].as_str().ok_or(NotANamespace)?).map_err(|_| NotANamespace)
}

/// Labels alone prove nothing: a user who may label a namespace of the host could assign it to any virtual cluster. So
/// the host name must also be the one that the agent derives.
pub fn claim(host: &HostNamespace, labels: &Value) -> Option<(ClusterName, VirtualNamespace)> {
    let cluster = ClusterName::new(labels[CLUSTER_LABEL].as_str()?).ok()?;
    let name = VirtualNamespace::new(labels[NAMESPACE_LABEL].as_str()?).ok()?;
    let agrees = HostNamespace::derive(&name, &cluster) == *host
        || HostNamespace::derive_formerly(&name, &cluster).as_ref() == Some(host);
    (agrees && !host.is_root()).then_some((cluster, name))
}

// === impl Version ===

impl Version {
    fn of(metadata: &Value) -> Option<Self> {
        Some(Self(metadata["resourceVersion"].as_str()?.parse().unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn labelled(host: &str, cluster: &str, name: &str) -> Value {
        json!({"metadata": {
            "name": host, "uid": "u", "resourceVersion": "7",
            "labels": {CLUSTER_LABEL: cluster, NAMESPACE_LABEL: name},
        }})
    }

    #[test]
    fn labels_and_name_must_agree() {
        let claim = |host, cluster, name| parse(&labelled(host, cluster, name)).unwrap().1.claim;
        assert!(claim("edge-ke-beijing", "ke-beijing", "edge").is_some());
        assert!(claim("edge-ke-hangzhou", "ke-beijing", "edge").is_none());
        assert!(claim("edge", "ke-beijing", "edge").is_none());
        assert!(claim("edge-ke-beijing", "ke-beijing", "Edge").is_none());
        // `atoll-root` of a cluster would be its root namespace.
        assert!(claim("atoll-root-ke-beijing", "ke-beijing", "atoll-root").is_none());
    }

    #[test]
    fn a_namespace_ends_from_its_deletion_on() {
        let mut namespace = labelled("a", "b", "c");
        assert_eq!(parse(&namespace).unwrap().1.phase, Phase::Active);
        namespace["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(parse(&namespace).unwrap().1.phase, Phase::Terminating);
    }

    proptest! {
        #[test]
        fn no_namespace_panics(text in "\\PC{0,12}", version in "\\PC{0,4}") {
            let _ = parse(&json!(text));
            let mut namespace = labelled(&text, &text, &text);
            namespace["metadata"]["resourceVersion"] = json!(version);
            let _ = parse(&namespace);
            let _ = gone(&namespace);
        }

        #[test]
        fn names_that_we_derive_are_recognised(cluster in "[a-z]([a-z0-9-]{0,40}[a-z0-9])?", name in "[a-z]([a-z0-9-]{0,61}[a-z0-9])?") {
            let wanted = (ClusterName::new(&cluster).unwrap(), VirtualNamespace::new(&name).unwrap());
            let host = HostNamespace::derive(&wanted.1, &wanted.0);
            prop_assume!(!host.is_root());
            for host in HostNamespace::derive_formerly(&wanted.1, &wanted.0).into_iter().chain([host]) {
                let (_, record) = parse(&labelled(host.as_str(), &cluster, &name)).unwrap();
                prop_assert_eq!(record.claim.as_ref(), Some(&wanted), "{}", host);
            }
        }
    }
}
