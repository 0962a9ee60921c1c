//! The control plane's side of a member: its Cluster, two Secrets, and what there is to say about them.

use protocol::ClusterName;
use serde_json::{Value, json};

use super::api::{Api, ApiError, Way};
use super::member::ensure;
use super::objects::{self, Credentials, KEPT_BY, Member, NAMESPACE, covers};

const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const NAMESPACES: &str = "/api/v1/namespaces";
/// Events about what has no namespace are in this one (client-go's `tools/record`).
const EVENTS: &str = "/api/v1/namespaces/default/events";
/// Clusters on a page of all.
const PAGE: u32 = 20;

/// A control plane.
#[derive(Clone, Debug)]
pub(super) struct Plane<W> {
    api: Api<W>,
}

/// What a Cluster is to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// There is none.
    None,
    /// It stands for this member, and nobody else keeps it.
    Ours {
        /// Its uid.
        uid: String,
        /// Whether all that is wanted is in it.
        is_current: bool,
    },
    /// Another one is where ours should be.
    Taken(Taken),
}

/// How far a Cluster is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dismissal {
    /// There is none.
    Gone,
    /// Karmada empties the member.
    Going,
    /// It is somebody else's, and so is what is in the member.
    NotOurs,
}

/// Why a Cluster is not touched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Taken {
    /// Its id is that of another cluster.
    #[error("Karmada's Cluster {name} is another cluster, with id {theirs}; give one of the two another name")]
    OtherId { name: ClusterName, theirs: String },
    /// The id is ours, the label is not.
    #[error(
        "Karmada's Cluster {name} is kept by the proxy-server {theirs:?} (label {KEPT_BY}); take the cluster out of the \
         configuration there, or the label off"
    )]
    OtherKeeper { name: ClusterName, theirs: String },
    /// Karmada's agent in the member is in charge.
    #[error("Karmada's Cluster {0} is in pull mode; unregister it first")]
    Pull(ClusterName),
    /// One cluster under two names would get everything twice.
    #[error("Karmada knows this cluster as {as_name} already, by its id; unjoin that one, or leave {name} out")]
    OtherName { name: ClusterName, as_name: String },
    /// It is on its way out.
    #[error("Karmada's Cluster {0} is being deleted")]
    Leaving(ClusterName),
}

// === impl Plane ===

impl<W: Way> Plane<W> {
    pub(super) fn new(api: Api<W>) -> Self {
        Self { api }
    }

    /// Looks at the Cluster that should be this member's.
    pub(super) async fn look(&self, member: &Member, id: &str) -> Result<Found, ApiError> {
        let name = &member.name;
        let Some(cluster) = self.api.find(&path(name)).await? else {
            return Ok(match self.known_as(id).await? {
                Some(as_name) => Found::Taken(Taken::OtherName { name: name.clone(), as_name }),
                None => Found::None,
            });
        };
        Ok(judge(member, id, &cluster))
    }

    /// Makes the Cluster and its Secrets what they should be; `found` is what [`look`](Self::look) saw.
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
            // First what the Cluster names, as karmadactl does: Karmada looks into it at once.
            self.secrets(member, credentials, None).await?;
            // Not applied: if somebody else was faster, it may be another cluster's by now.
            let made = self.api.create(CLUSTERS, &member.least(&credentials.id)).await?;
            made.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        self.secrets(member, credentials, Some(&uid)).await?;
        let mut cluster = member.kept(&credentials.id);
        // If it was exchanged meanwhile, this is refused (409).
        cluster["metadata"]["uid"] = uid.into();
        self.api.apply(&path(&member.name), &cluster).await?;
        Ok(())
    }

    /// Whether the Secrets hold what they should.
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
            // Others may own it too.
            if let Some(metadata) = wanted["metadata"].as_object_mut() {
                metadata.remove("ownerReferences");
            }
            if !owned || !there.is_some_and(|there| covers(&there, &wanted)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The names of all Clusters that carry our label.
    pub(super) async fn kept(&self, by: &str) -> Result<Vec<ClusterName>, ApiError> {
        // A label's value needs no escapes in a query.
        let list = self.api.get(&format!("{CLUSTERS}?labelSelector={KEPT_BY}%3D{by}")).await?;
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let name = |item: &Value| item.pointer("/metadata/name")?.as_str()?.parse().ok();
        Ok(items.iter().filter_map(name).collect())
    }

    /// Deletes the Cluster if it is kept by us.
    pub(super) async fn dismiss(&self, name: &ClusterName, kept_by: &str) -> Result<Dismissal, ApiError> {
        let Some(cluster) = self.api.find(&path(name)).await? else { return Ok(Dismissal::Gone) };
        if label(&cluster) != Some(kept_by) {
            return Ok(Dismissal::NotOurs);
        }
        if cluster.pointer("/metadata/deletionTimestamp").is_none() {
            let uid = cluster.pointer("/metadata/uid").cloned().unwrap_or_default();
            self.api.delete(&path(name), &json!({"preconditions": {"uid": uid}})).await?;
        }
        Ok(Dismissal::Going)
    }

    /// Says something about a Cluster to those who look at Karmada.
    pub(super) async fn tell(&self, name: &ClusterName, reason: &str, message: &str) -> Result<(), ApiError> {
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

    /// The name of a Cluster with this id.
    async fn known_as(&self, id: &str) -> Result<Option<String>, ApiError> {
        let mut from = String::new();
        loop {
            let page = self.api.get(&format!("{CLUSTERS}?limit={PAGE}{from}")).await?;
            let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(known) = items.iter().find(|cluster| cluster.pointer("/spec/id").is_some_and(|its| its == id)) {
                return Ok(known.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned));
            }
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                // Base64 for URLs, so it needs no escapes either.
                Some(token) if !token.is_empty() => from = format!("&continue={token}"),
                _ => return Ok(None),
            }
        }
    }
}

fn judge(member: &Member, id: &str, cluster: &Value) -> Found {
    let name = member.name.clone();
    let text = |pointer: &str| cluster.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let taken = if cluster.pointer("/metadata/deletionTimestamp").is_some() {
        Taken::Leaving(name)
    } else if text("/spec/id") != id {
        Taken::OtherId { name, theirs: text("/spec/id").to_owned() }
    } else if let Some(theirs) = label(cluster).filter(|theirs| member.kept_by.as_deref() != Some(*theirs)) {
        Taken::OtherKeeper { name, theirs: theirs.to_owned() }
    } else if text("/spec/syncMode") == "Pull" {
        Taken::Pull(name)
    } else {
        return Found::Ours { uid: text("/metadata/uid").to_owned(), is_current: covers(cluster, &member.kept(id)) };
    };
    Found::Taken(taken)
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
