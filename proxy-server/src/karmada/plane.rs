//! The objects of a member in Karmada's control plane: its Cluster, two Secrets, and Events.

use protocol::ClusterName;
use serde_json::{Value, json};

use super::api::{Api, ApiError, Route};
use super::member::ensure;
use super::objects::{self, Credentials, KEPT_BY, Member, NAMESPACE, covers};

const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const NAMESPACES: &str = "/api/v1/namespaces";
/// The namespace of Events for cluster-scoped objects (client-go's `tools/record`).
const EVENTS: &str = "/api/v1/namespaces/default/events";
/// The number of Clusters on a page.
const PAGE: u32 = 20;

/// A control plane.
#[derive(Clone, Debug)]
pub(super) struct Plane<R> {
    api: Api<R>,
}

/// The Cluster of a member, as it is in Karmada.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It does not exist.
    None,
    /// It is this member, and this configuration may manage it.
    Ours {
        /// Its uid.
        uid: String,
        /// Whether it has all wanted fields.
        is_current: bool,
    },
    /// This configuration must not manage it.
    Conflict(Conflict),
}

/// The progress of the deletion of a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    /// It does not exist.
    Complete,
    /// It exists until Karmada has removed its objects from the member.
    Pending,
    /// It is not managed by this configuration, and neither are the objects in the member. It stays.
    NotOurs,
}

/// Why the Cluster of a member must not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Conflict {
    /// Its id is that of another cluster.
    #[error("Karmada's Cluster {name} is another cluster, with id {theirs}; give one of the two another name")]
    OtherId { name: ClusterName, theirs: String },
    /// It has the id of the member, and the label of another configuration.
    #[error(
        "Karmada's Cluster {name} is kept by the proxy-server {theirs:?} (label {KEPT_BY}); take the cluster out of the \
         configuration there, or the label off"
    )]
    OtherManager { name: ClusterName, theirs: String },
    /// Karmada's agent in the member manages it.
    #[error("Karmada's Cluster {0} is in pull mode; unregister it first")]
    Pull(ClusterName),
    /// A cluster with two names would get everything twice.
    #[error(
        "this cluster is already a member of Karmada as {as_name} (by its ID); unjoin that member, or remove {name} from `karmada.clusters`"
    )]
    OtherName { name: ClusterName, as_name: String },
    /// It is being deleted.
    #[error("Karmada's Cluster {0} is being deleted")]
    Leaving(ClusterName),
}

// === impl Plane ===

impl<R: Route> Plane<R> {
    pub(super) fn new(api: Api<R>) -> Self {
        Self { api }
    }

    /// Reads the Cluster of this member, and compares it.
    pub(super) async fn compare(&self, member: &Member, id: &str) -> Result<Found, ApiError> {
        let name = &member.name;
        let Some(cluster) = self.api.find(&path(name)).await? else {
            return Ok(match self.known_as(id).await? {
                Some(as_name) => Found::Conflict(Conflict::OtherName { name: name.clone(), as_name }),
                None => Found::None,
            });
        };
        Ok(compare(member, id, &cluster))
    }

    /// Writes the Cluster and its Secrets. `found` is the uid of the Cluster, if it exists.
    pub(super) async fn write(
        &self,
        member: &Member,
        credentials: &Credentials,
        found: Option<&str>,
    ) -> Result<(), ApiError> {
        let namespace = &objects::namespace();
        ensure(&self.api, NAMESPACES, NAMESPACE, namespace).await?;
        let uid = if let Some(uid) = found {
            uid.to_owned()
        } else {
            // The Secrets first, as with karmadactl: Karmada reads them as soon as the Cluster exists.
            self.secrets(member, credentials, None).await?;
            // Not an apply: somebody else may have created a Cluster with this name in the meantime.
            let made = self.api.create(CLUSTERS, &member.least(&credentials.id)).await?;
            made.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        self.secrets(member, credentials, Some(&uid)).await?;
        let mut cluster = member.kept(&credentials.id);
        // If another Cluster has replaced it, this is refused (409).
        cluster["metadata"]["uid"] = uid.into();
        self.api.apply(&path(&member.name), &cluster).await?;
        Ok(())
    }

    /// Whether the Secrets have the wanted content.
    pub(super) async fn secrets_are_current(
        &self,
        member: &Member,
        credentials: &Credentials,
        uid: &str,
    ) -> Result<bool, ApiError> {
        for wanted in objects::secrets(&member.name, credentials, Some(uid)) {
            let there = self.api.find(&secret_path(&wanted)).await?;
            let owned = there.as_ref().is_some_and(|there| is_owned(there, uid));
            let mut wanted = wanted;
            // It may have other owners, too.
            if let Some(metadata) = wanted["metadata"].as_object_mut() {
                metadata.remove("ownerReferences");
            }
            if !owned || !there.is_some_and(|there| covers(&there, &wanted)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The names of all Clusters with this value of the label [`KEPT_BY`].
    pub(super) async fn kept(&self, by: &str) -> Result<Vec<ClusterName>, ApiError> {
        // A label value needs no escapes in a query.
        let list = self.api.get(&format!("{CLUSTERS}?labelSelector={KEPT_BY}%3D{by}")).await?;
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let name = |item: &Value| item.pointer("/metadata/name")?.as_str()?.parse().ok();
        Ok(items.iter().filter_map(name).collect())
    }

    /// Deletes the Cluster if this configuration manages it.
    pub(super) async fn delete(&self, name: &ClusterName, kept_by: &str) -> Result<Deletion, ApiError> {
        let Some(cluster) = self.api.find(&path(name)).await? else { return Ok(Deletion::Complete) };
        if label(&cluster) != Some(kept_by) {
            return Ok(Deletion::NotOurs);
        }
        if cluster.pointer("/metadata/deletionTimestamp").is_none() {
            let uid = cluster.pointer("/metadata/uid").cloned().unwrap_or_default();
            self.api.delete(&path(name), &json!({"preconditions": {"uid": uid}})).await?;
        }
        Ok(Deletion::Pending)
    }

    /// Writes a Warning about a Cluster, as an Event in Karmada.
    pub(super) async fn warn(&self, name: &ClusterName, reason: &str, message: &str) -> Result<(), ApiError> {
        let now = ops::date::Moment::now().to_string();
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": format!("{name}."), "namespace": "default"},
            "involvedObject": {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "name": name.as_str()},
            "reason": reason,
            "message": message,
            "type": "Warning",
            "source": {"component": "atoll-proxy-server"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        self.api.create(EVENTS, &event).await.map(drop)
    }

    async fn secrets(&self, member: &Member, credentials: &Credentials, owner: Option<&str>) -> Result<(), ApiError> {
        for secret in objects::secrets(&member.name, credentials, owner) {
            self.api.apply(&secret_path(&secret), &secret).await?;
        }
        Ok(())
    }

    /// The name of the Cluster with this id.
    async fn known_as(&self, id: &str) -> Result<Option<String>, ApiError> {
        let mut from = String::new();
        loop {
            let page = self.api.get(&format!("{CLUSTERS}?limit={PAGE}{from}")).await?;
            let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(known) = items.iter().find(|cluster| cluster.pointer("/spec/id").is_some_and(|its| its == id)) {
                return Ok(known.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned));
            }
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                // A continue token is URL-safe base64, so it needs no escapes either.
                Some(token) if !token.is_empty() => from = format!("&continue={token}"),
                _ => return Ok(None),
            }
        }
    }
}

fn compare(member: &Member, id: &str, cluster: &Value) -> Found {
    let name = member.name.clone();
    let text = |pointer: &str| cluster.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let conflict = if cluster.pointer("/metadata/deletionTimestamp").is_some() {
        Conflict::Leaving(name)
    } else if text("/spec/id") != id {
        Conflict::OtherId { name, theirs: text("/spec/id").to_owned() }
    } else if let Some(theirs) = label(cluster).filter(|theirs| member.kept_by.as_deref() != Some(*theirs)) {
        Conflict::OtherManager { name, theirs: theirs.to_owned() }
    } else if text("/spec/syncMode") == "Pull" {
        Conflict::Pull(name)
    } else {
        return Found::Ours { uid: text("/metadata/uid").to_owned(), is_current: covers(cluster, &member.kept(id)) };
    };
    Found::Conflict(conflict)
}

fn label(cluster: &Value) -> Option<&str> {
    cluster.pointer("/metadata/labels")?.get(KEPT_BY)?.as_str()
}

fn is_owned(object: &Value, uid: &str) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == uid))
}

fn path(name: &ClusterName) -> String {
    format!("{CLUSTERS}/{name}")
}

fn secret_path(secret: &Value) -> String {
    let name = secret.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    format!("{NAMESPACES}/{NAMESPACE}/secrets/{name}")
}

#[cfg(test)]
mod tests;
