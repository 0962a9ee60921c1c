//! The objects that make a cluster a member, as `karmadactl join` makes them (Karmada's `pkg/util/credential.go` and
//! `pkg/karmadactl/join/join.go`).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ops::secret::Secret;
use protocol::ClusterName;
use serde_json::{Map, Value, json};

/// Where Karmada keeps what belongs to a member, on both sides.
pub const NAMESPACE: &str = "karmada-cluster";
/// Who Karmada's users act through.
pub const IMPERSONATOR: &str = "karmada-impersonator";
/// On a Cluster: which proxy-server keeps it.
pub const KEPT_BY: &str = "atoll.dev/kept-by";
/// The longest name of a Cluster: Karmada puts a prefix before it (`pkg/apis/cluster/validation`).
pub const LONGEST_NAME: usize = 48;

const SYSTEM: (&str, &str) = ("karmada.io/system", "true");

/// What Karmada is told of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name on both sides.
    pub name: ClusterName,
    /// Who keeps its Cluster, if that is not a person.
    pub kept_by: Option<String>,
    /// The URL of its API.
    pub api_endpoint: String,
    /// The HTTP proxy before it.
    pub proxy_url: Option<String>,
    /// For that proxy.
    pub proxy_header: BTreeMap<String, String>,
    /// More labels of the Cluster.
    pub labels: BTreeMap<String, String>,
    /// Whose machines.
    pub provider: Option<String>,
    /// Where.
    pub region: Option<String>,
    /// Where in it.
    pub zones: Vec<String>,
}

/// What the cluster says of itself, and what Karmada speaks to it with.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The uid of its `kube-system`.
    pub id: String,
    /// Of Karmada's own account.
    pub token: Secret,
    /// Of the account that impersonates Karmada's users.
    pub impersonator: Secret,
    /// Who signs the endpoint's certificate, PEM.
    pub authority: String,
}

/// The service account that Karmada's controllers are in a member.
pub fn account(name: &ClusterName) -> String {
    format!("karmada-{name}")
}

/// ClusterRole and ClusterRoleBinding of that account.
pub fn role(name: &ClusterName) -> String {
    format!("karmada-controller-manager:karmada-{name}")
}

/// The Secret with the impersonator's token, in Karmada. The one with the other token is called like the cluster.
pub fn impersonator_secret(name: &ClusterName) -> String {
    format!("{name}-impersonator")
}

/// The namespace, on both sides.
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

/// Everything, in the member.
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

/// That role for Karmada's account.
pub fn cluster_role_binding(name: &ClusterName) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role(name), "labels": system()},
        "subjects": [{"kind": "ServiceAccount", "name": account(name), "namespace": NAMESPACE}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role(name)},
    })
}

/// Both Secrets in Karmada. `owner` is the uid of the Cluster, if there is one: they go with it.
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
    /// The Cluster as it is kept: what another way of joining may have set is said to be empty, too.
    pub(super) fn kept(&self, id: &str) -> Value {
        let mut cluster = self.cluster(id);
        cluster["spec"]["insecureSkipTLSVerification"] = false.into();
        if self.proxy_url.is_none() {
            cluster["spec"]["proxyURL"] = "".into();
        }
        cluster
    }

    /// The Cluster, whole.
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

    /// The part that a Cluster is created with: what Karmada needs to reach the member. The fields of a creation remain
    /// its creator's, so each of them must be in every form that is kept.
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

/// Whether everything that is wanted is there. Go leaves out what is empty, so what is not there is empty.
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
