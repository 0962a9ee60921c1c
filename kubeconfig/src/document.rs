//! Writes a kubeconfig with one context (`k8s.io/client-go/tools/clientcmd/api/v1`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Context, cluster and user have the same name.
#[derive(Clone, Debug)]
pub struct Document {
    /// Their name.
    pub name: String,
    /// The `cluster:` object.
    pub cluster: Map<String, Value>,
    /// The `user:` object.
    pub user: Map<String, Value>,
    /// The context's namespace.
    pub namespace: Option<Value>,
}

/// The keys in the order of `kubectl config view`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct File<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    kind: &'static str,
    clusters: [Value; 1],
    users: [Value; 1],
    contexts: [Value; 1],
    current_context: &'a str,
}

// === impl Document ===

impl Document {
    /// The file as YAML.
    pub fn to_yaml(&self) -> Result<String, serde_saphyr::ser::Error> {
        let name = &self.name;
        let mut context = json!({"cluster": name, "user": name});
        if let Some(namespace) = &self.namespace {
            context["namespace"] = namespace.clone();
        }
        let file = File {
            api_version: "v1",
            kind: "Config",
            clusters: [json!({"name": name, "cluster": self.cluster})],
            users: [json!({"name": name, "user": self.user})],
            contexts: [json!({"name": name, "context": context})],
            current_context: name,
        };
        // Write base64 data on one line, like kubectl.
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        serde_saphyr::to_string_with_options(&file, options)
    }
}

/// The `user:` object of a client with a certificate and its key, both in PEM.
pub fn certificate_user(certificate: &[u8], key: &[u8]) -> Map<String, Value> {
    let entries = [("client-certificate-data", certificate), ("client-key-data", key)];
    entries.into_iter().map(|(name, pem)| (name.to_owned(), data(pem))).collect()
}

/// The value of a `*-data` key.
pub fn data(content: &[u8]) -> Value {
    Value::String(STANDARD.encode(content))
}
