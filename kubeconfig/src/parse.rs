//! Parses a kubeconfig, and refuses keys that are not supported instead of ignoring them.
//!
//! Only the current context counts. The precedence of contradicting keys is that of client-go
//! (`tools/clientcmd/api/types.go` and `client_config.go`): data over file, and `tokenFile` over `token`.

mod document;
mod kubeconfig_error;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ops::secret::Secret;
use rustls_pki_types::ServerName;

use crate::address::Address;
use crate::client_config::{ClientConfig, KeyPair, Material};
pub use document::yaml;
use document::{AuthInfo, Cluster, Document, Named, Selected};
pub use kubeconfig_error::KubeconfigError;

/// Parses the content of a kubeconfig. Paths in it are relative to `directory`.
pub fn parse(content: &[u8], directory: &Path) -> Result<ClientConfig, KubeconfigError> {
    let document = Document::read(content)?;
    let current = document.current_context.filter(|name| !name.is_empty());
    let current = current.ok_or(KubeconfigError::NoContext)?;
    let context: Selected = find(document.contexts, "context", &current)?;
    let cluster = find(document.clusters, "cluster", &context.cluster)?;
    let user = find(document.users, "user", &context.user)?;
    let (identity, token) = credential(user, directory)?;
    let (server, server_name, authorities) = target(cluster, directory)?;
    Ok(ClientConfig { server, server_name, authorities, identity, token })
}

fn find<T>(entries: Option<Vec<Named<T>>>, kind: &'static str, name: &str) -> Result<T, KubeconfigError> {
    let found = entries.into_iter().flatten().find(|entry| entry.name == name);
    let value = found.and_then(|entry| entry.value);
    value.ok_or_else(|| KubeconfigError::Missing { kind, name: name.to_owned() })
}

fn target(
    cluster: Cluster,
    directory: &Path,
) -> Result<(Address, Option<ServerName<'static>>, Material), KubeconfigError> {
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err(KubeconfigError::Insecure);
    }
    if given(cluster.proxy_url).is_some() {
        return Err(KubeconfigError::Unsupported { key: "proxy-url", instead: "this API server is reached directly" });
    }
    let server = cluster.server.parse().map_err(KubeconfigError::Server)?;
    let server_name = given(cluster.tls_server_name)
        .map(|name| ServerName::try_from(name.clone()).map_err(|_| KubeconfigError::ServerName(name)));
    let authorities = material(
        ("certificate-authority-data", cluster.certificate_authority_data),
        cluster.certificate_authority,
        directory,
    )?;
    let authorities = authorities.ok_or(KubeconfigError::NoAuthority)?;
    Ok((server, server_name.transpose()?, authorities))
}

fn credential(user: AuthInfo, directory: &Path) -> Result<(Option<KeyPair>, Option<Material>), KubeconfigError> {
    refuse(&user)?;
    let certificate =
        material(("client-certificate-data", user.client_certificate_data), user.client_certificate, directory)?;
    let key = material(("client-key-data", user.client_key_data), user.client_key, directory)?;
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(KeyPair { certificate, key }),
        (None, None) => None,
        _ => return Err(KubeconfigError::HalfIdentity),
    };
    let token_file = given(user.token_file).map(|path| Material::File(directory.join(path)));
    let token = user.token.filter(|token| !token.expose().is_empty());
    let token = token_file.or(token.map(Material::Inline));
    if identity.is_none() && token.is_none() {
        return Err(KubeconfigError::NoCredential);
    }
    Ok((identity, token))
}

fn refuse(user: &AuthInfo) -> Result<(), KubeconfigError> {
    let unsupported = [
        (
            user.exec.is_some(),
            "exec",
            "credential plugins are never run; use the `tokenFile` of a service account or a client certificate",
        ),
        (
            user.auth_provider.is_some(),
            "auth-provider",
            "use the `tokenFile` of a service account or a client certificate",
        ),
        (
            user.username.is_some() || user.password.is_some(),
            "username",
            "Kubernetes removed basic authentication in 1.19; use a `tokenFile` or a client certificate",
        ),
        (
            user.r#as.is_some() || user.as_uid.is_some() || user.as_groups.is_some() || user.as_user_extra.is_some(),
            "as",
            "use the credentials of that user instead of impersonation",
        ),
    ];
    match unsupported.into_iter().find(|(is_there, ..)| *is_there) {
        Some((_, key, instead)) => Err(KubeconfigError::Unsupported { key, instead }),
        None => Ok(()),
    }
}

fn material(
    (key, data): (&'static str, Option<Secret>),
    file: Option<String>,
    directory: &Path,
) -> Result<Option<Material>, KubeconfigError> {
    match data.filter(|data| !data.expose().is_empty()) {
        Some(data) => {
            // YAML may fold a long value into several lines.
            let packed: String = data.expose().split_ascii_whitespace().collect();
            let bytes = STANDARD.decode(packed).ok();
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            let text = text.ok_or(KubeconfigError::Data(key))?;
            Ok(Some(Material::Inline(text.into())))
        }
        None => Ok(given(file).map(|path| Material::File(directory.join(path)))),
    }
}

/// An empty text counts as absent, as in Go.
fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
