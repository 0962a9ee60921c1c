//! The protocol of credential plugins (`k8s.io/client-go/pkg/apis/clientauthentication/v1/types.go`).

use std::io::Write;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::json;

use super::session::Session;

/// The environment variable with the request of client-go.
const REQUEST: &str = "KUBERNETES_EXEC_INFO";

const GROUP: &str = "client.authentication.k8s.io";

/// The version of the protocol that client-go speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plugin {
    api_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    api_version: String,
}

// === impl Plugin ===

impl Plugin {
    /// The version that client-go requests, or v1 if people run the command.
    pub(super) fn of_environment() -> anyhow::Result<Self> {
        Self::of(std::env::var(REQUEST).ok().as_deref())
    }

    fn of(request: Option<&str>) -> anyhow::Result<Self> {
        let Some(request) = request else { return Ok(Self { api_version: format!("{GROUP}/v1") }) };
        let request: Request = serde_json::from_str(request).with_context(|| format!("{REQUEST} is malformed"))?;
        match request.api_version.strip_prefix(GROUP) {
            Some("/v1" | "/v1beta1") => Ok(Self { api_version: request.api_version }),
            _ => bail!(
                "{REQUEST} has the version {:?}; set apiVersion: {GROUP}/v1 in the kubeconfig",
                request.api_version
            ),
        }
    }

    /// Prints the credential.
    pub(super) fn print(&self, session: &Session, out: &mut dyn Write) -> anyhow::Result<()> {
        let credential = json!({
            "kind": "ExecCredential",
            "apiVersion": self.api_version,
            // client-go requires the field in v1.
            "spec": {"interactive": false},
            "status": {"expirationTimestamp": session.expires(), "token": session.id_token()},
        });
        writeln!(out, "{credential}")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_request() {
        let of =
            |version: &str| Plugin::of(Some(&json!({"apiVersion": version, "kind": "ExecCredential"}).to_string()));
        for version in ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"] {
            assert_eq!(of(version).unwrap().api_version, version);
        }
        assert_eq!(Plugin::of(None).unwrap().api_version, "client.authentication.k8s.io/v1");
        assert!(of("client.authentication.k8s.io/v2").is_err());
        assert!(Plugin::of(Some("{")).is_err());
    }
}
