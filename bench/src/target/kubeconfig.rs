//! Reads the current context of a kubeconfig with inline data, like those of `atoll kubeconfig`. It refuses other
//! kubeconfigs, because a run without a credential would measure error responses.

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ops::secret::Secret;
use serde::Deserialize;

use super::address::Proxy;

/// A server, and the credential for it.
#[derive(Debug, Default)]
pub(super) struct Kubeconfig {
    pub(super) server: String,
    pub(super) server_name: Option<String>,
    pub(super) proxy: Option<Proxy>,
    pub(super) ca: Option<Vec<u8>>,
    /// Certificate and key, in PEM.
    pub(super) identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) token: Option<Secret>,
}

/// The keys that this program supports (client-go's `tools/clientcmd/api/v1/types.go`).
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Document {
    current_context: String,
    clusters: Vec<Entry>,
    contexts: Vec<Entry>,
    users: Vec<Entry>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    name: String,
    cluster: Cluster,
    context: Selected,
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
    certificate_authority_data: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Selected {
    cluster: String,
    user: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    client_certificate_data: Option<String>,
    client_key_data: Option<Secret>,
    token: Option<Secret>,
}

// === impl Kubeconfig ===

impl Kubeconfig {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let options = serde_saphyr::options! {
            // A snippet of the file in an error could contain a key.
            with_snippet: false,
        };
        let document: Document =
            serde_saphyr::from_str_with_options(text, options).context("it is not a kubeconfig with one context")?;
        let context = find(document.contexts, "context", &document.current_context)?.context;
        let cluster = match find(document.clusters, "cluster", &context.cluster)?.cluster {
            cluster if cluster.server.is_empty() => bail!("the cluster has no `server`"),
            cluster => cluster,
        };
        let user = find(document.users, "user", &context.user)?.user;
        let proxy = cluster.proxy_url.filter(|url| !url.is_empty()).map(|url| url.parse()).transpose()?;
        let ca = cluster.certificate_authority_data.as_deref().map(decode).transpose()?;
        let certificate = user.client_certificate_data.as_deref().map(decode).transpose()?;
        let key = user.client_key_data.as_ref().map(|key| decode(key.expose())).transpose()?;
        ensure!(certificate.is_some() == key.is_some(), "of the user's certificate and key one is missing");
        let identity = certificate.zip(key);
        ensure!(identity.is_some() || user.token.is_some(), "the user has neither an inline certificate nor a token");
        Ok(Self {
            server: cluster.server,
            server_name: cluster.tls_server_name,
            proxy,
            ca,
            identity,
            token: user.token,
        })
    }
}

fn find(entries: Vec<Entry>, kind: &str, name: &str) -> anyhow::Result<Entry> {
    entries.into_iter().find(|entry| entry.name == name).with_context(|| format!("there is no {kind} {name:?}"))
}

fn decode(data: &str) -> anyhow::Result<Vec<u8>> {
    // YAML may fold a long value into lines.
    let packed: String = data.split_ascii_whitespace().collect();
    STANDARD.decode(packed).ok().context("a `-data` value is not base64")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
apiVersion: v1
kind: Config
clusters:
- name: ke-beijing
  cluster: {server: 'https://ke-beijing.atoll.internal:443', proxy-url: 'http://127.0.0.1:8090',
            certificate-authority-data: Y2E=}
contexts:
- name: one
  context: {cluster: ke-beijing, user: admin, namespace: edge}
current-context: one
users:
- name: admin
  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}
";

    #[test]
    fn the_current_context_counts() {
        let found = Kubeconfig::parse(FILE).unwrap();
        assert_eq!(found.server, "https://ke-beijing.atoll.internal:443");
        assert_eq!(found.proxy, Some("http://127.0.0.1:8090".parse().unwrap()));
        assert_eq!(found.ca.as_deref(), Some(b"ca".as_slice()));
        assert_eq!(found.identity, Some((b"cert".to_vec(), b"key".to_vec())));
    }

    #[test]
    fn unsupported_kubeconfigs_are_refused() {
        for (from, to) in [
            ("current-context: one", "current-context: two"),
            (", client-key-data: a2V5", ""),
            ("client-certificate-data: Y2VydA==, client-key-data: a2V5", "tokenFile: /x"),
            ("client-key-data: a2V5", "client-key-data: '%'"),
            ("http://127.0.0.1", "socks5://127.0.0.1"),
            ("server: 'https://ke-beijing.atoll.internal:443', ", ""),
        ] {
            assert!(FILE.contains(from), "{from}");
            assert!(Kubeconfig::parse(&FILE.replace(from, to)).is_err(), "{from} -> {to}");
        }
    }
}
