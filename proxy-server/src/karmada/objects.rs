//! The objects of a member, as `karmadactl join` creates them (Karmada's `pkg/util/credential.go` and
//! `pkg/karmadactl/join/join.go`).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ops::secret::Secret;
use protocol::ClusterName;
use protocol::user_certificate::ClientAddress;
use serde_json::{Map, Value, json};

use crate::config::Karmada;
pub use crate::config::{KEPT_BY, LONGEST_NAME};

/// The namespace for objects of members, in Karmada and in the member.
pub const NAMESPACE: &str = "karmada-cluster";
/// The service account that impersonates Karmada's users.
pub const IMPERSONATOR: &str = "karmada-impersonator";

const SYSTEM: (&str, &str) = ("karmada.io/system", "true");

/// The facts about a cluster that Karmada gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name in Atoll and in Karmada.
    pub name: ClusterName,
    /// The `keptBy` value, if a proxy-server manages the Cluster.
    pub kept_by: Option<String>,
    /// The URL of its API.
    pub api_endpoint: String,
    /// The URL of the HTTP proxy.
    pub proxy_url: Option<String>,
    /// The headers for that proxy.
    pub proxy_header: BTreeMap<String, String>,
    /// More labels of the Cluster.
    pub labels: BTreeMap<String, String>,
    /// The provider.
    pub provider: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The zones.
    pub zones: Vec<String>,
}

/// The identity of the member, and Karmada's credentials for it.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The uid of its `kube-system`.
    pub id: String,
    /// The token of Karmada's own account.
    pub token: Secret,
    /// The token of the account that impersonates Karmada's users.
    pub impersonator: Secret,
    /// The CA of the endpoint's certificate, PEM.
    pub authority: String,
}

/// The service account of Karmada's controllers in a member.
pub fn account(name: &ClusterName) -> String {
    format!("karmada-{name}")
}

/// The name of the ClusterRole and ClusterRoleBinding of that account.
pub fn role(name: &ClusterName) -> String {
    format!("karmada-controller-manager:karmada-{name}")
}

/// The Secret with the impersonator's token in Karmada. The Secret with the other token has the name of the cluster.
pub fn impersonator_secret(name: &ClusterName) -> String {
    format!("{name}-impersonator")
}

/// The namespace, in Karmada and in the member.
pub fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": system()}})
}

/// A service account in the member.
pub fn service_account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name)})
}

/// The Secret that the host fills with a token of the account of the same name.
pub fn token_secret(account: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": account,
            "namespace": NAMESPACE,
            "annotations": {"kubernetes.io/service-account.name": account},
        },
        "type": "kubernetes.io/service-account-token",
    })
}

/// A ClusterRole with all rights, in the member.
pub fn cluster_role(name: &ClusterName) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": role(name), "labels": system()},
        "rules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["get"], "nonResourceURLs": ["*"]},
        ],
    })
}

/// Binds that role to Karmada's account.
pub fn cluster_role_binding(name: &ClusterName) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role(name), "labels": system()},
        "subjects": [{"kind": "ServiceAccount", "name": account(name), "namespace": NAMESPACE}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role(name)},
    })
}

/// Both Secrets in Karmada. `owner` is the uid of the Cluster, if it exists: Karmada deletes them with it.
pub fn secrets(name: &ClusterName, credentials: &Credentials, owner: Option<&str>) -> [Value; 2] {
    let secret = |called: &str, data: Value| {
        let mut secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata(called),
            "type": "Opaque",
            "data": data,
        });
        if let Some(uid) = owner {
            secret["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "cluster.karmada.io/v1alpha1",
                "kind": "Cluster",
                "name": name.as_str(),
                "uid": uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }]);
        }
        secret
    };
    let encoded = |text: &str| STANDARD.encode(text);
    let token = encoded(credentials.token.expose());
    [
        secret(&impersonator_secret(name), json!({"token": encoded(credentials.impersonator.expose())})),
        secret(name.as_str(), json!({"caBundle": encoded(&credentials.authority), "token": token})),
    ]
}

// === impl Member ===

impl Member {
    /// The facts of the configuration about a cluster.
    pub fn of(karmada: &Karmada, name: &ClusterName, domain: &str) -> Self {
        let ClientAddress { server: api_endpoint, proxy_url } = karmada.through.address(&karmada.url, name, domain);
        let facts = karmada.facts(name);
        Self {
            name: name.clone(),
            kept_by: Some(karmada.kept_by.to_string()),
            api_endpoint,
            proxy_url,
            proxy_header: karmada.proxy_header.clone(),
            labels: facts.map(|facts| facts.labels.clone()).unwrap_or_default(),
            provider: facts.and_then(|facts| facts.provider.clone()),
            region: facts.and_then(|facts| facts.region.clone()),
            zones: facts.map(|facts| facts.zones.clone()).unwrap_or_default(),
        }
    }
    /// The Cluster for an apply. Fields that another way of joining may have set are explicitly empty.
    pub(super) fn kept(&self, id: &str) -> Value {
        let mut cluster = self.cluster(id);
        cluster["spec"]["insecureSkipTLSVerification"] = false.into();
        if self.proxy_url.is_none() {
            cluster["spec"]["proxyURL"] = "".into();
        }
        cluster
    }

    /// The complete Cluster.
    pub fn cluster(&self, id: &str) -> Value {
        let mut cluster = self.least(id);
        let labels = cluster["metadata"]["labels"].as_object_mut().expect("made below");
        labels.extend(self.labels.iter().map(|(key, value)| (key.clone(), value.clone().into())));
        let spec = cluster["spec"].as_object_mut().expect("made below");
        let mut put = |key: &str, value: Value| spec.insert(key.to_owned(), value);
        if let Some(provider) = &self.provider {
            put("provider", provider.clone().into());
        }
        if let Some(region) = &self.region {
            put("region", region.clone().into());
        }
        if !self.zones.is_empty() {
            put("zones", self.zones.clone().into());
        }
        if !self.proxy_header.is_empty() {
            put("proxyHeader", json!(self.proxy_header));
        }
        cluster
    }

    /// The fields with which a Cluster is created: what Karmada needs to reach the member. The creator stays the owner
    /// of these fields, so every apply must contain them.
    pub fn least(&self, id: &str) -> Value {
        let name = self.name.as_str();
        let kept_by = self.kept_by.iter().map(|keeper| (KEPT_BY.to_owned(), keeper.clone().into()));
        let labels: Map<String, Value> = kept_by.collect();
        let mut cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "syncMode": "Push",
                "id": id,
                "apiEndpoint": self.api_endpoint,
                "secretRef": {"namespace": NAMESPACE, "name": name},
                "impersonatorSecretRef": {"namespace": NAMESPACE, "name": impersonator_secret(&self.name)},
            },
        });
        if let Some(url) = &self.proxy_url {
            cluster["spec"]["proxyURL"] = url.clone().into();
        }
        cluster
    }
}

fn metadata(name: &str) -> Value {
    json!({"name": name, "namespace": NAMESPACE, "labels": system()})
}

fn system() -> Map<String, Value> {
    Map::from_iter([(SYSTEM.0.to_owned(), SYSTEM.1.into())])
}

/// Whether an object contains all wanted fields. Go omits empty fields, so a missing field counts as empty.
pub(super) fn covers(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| covers(there.get(key).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(there, wanted)| covers(there, wanted))
        }
        (Value::Null, wanted) => is_empty(wanted),
        (there, wanted) => there == wanted,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
