//! The API server of the cluster in which this process runs as a pod, like `rest.InClusterConfig` of client-go.

use std::path::Path;

use kubeconfig::{Address, AddressError};
use kubeconfig::{ClientConfig, Material};

/// The path at which the kubelet mounts the service account of a pod (admission plugin `ServiceAccount`,
/// `DefaultAPITokenMountPath`).
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The process does not run in a pod, or the pod lacks the variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InClusterError {
    /// A variable is missing. The kubelet sets both in every container.
    #[error("the environment variable {0} is not set: this process does not run in a pod")]
    NotInPod(&'static str),
    /// The variables are not a valid address.
    #[error("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT")]
    Address(#[source] AddressError),
}

/// Reads the environment.
pub(super) fn client_config() -> Result<ClientConfig, InClusterError> {
    from(|name| std::env::var(name).ok(), Path::new(SERVICE_ACCOUNT))
}

fn from(variable: impl Fn(&'static str) -> Option<String>, directory: &Path) -> Result<ClientConfig, InClusterError> {
    let value = |name| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.ok_or(InClusterError::NotInPod(name))
    };
    let host = value("KUBERNETES_SERVICE_HOST")?;
    let port = value("KUBERNETES_SERVICE_PORT")?;
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let address = format!("https://{host}:{port}").parse::<Address>();
    Ok(ClientConfig {
        server: address.map_err(InClusterError::Address)?,
        server_name: None,
        authorities: Material::File(directory.join("ca.crt")),
        identity: None,
        token: Some(Material::File(directory.join("token"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pods_environment_is_an_address() {
        for (host, expected) in [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")] {
            let variable = |name: &str| Some(if name.ends_with("HOST") { host } else { "443" }.to_owned());
            let client_config = from(variable, Path::new("/sa")).unwrap();
            assert_eq!(client_config.server.to_string(), expected);
            assert!(matches!(client_config.token, Some(Material::File(path)) if path == Path::new("/sa/token")));
        }
    }

    #[test]
    fn outside_a_pod_the_missing_variable_is_reported() {
        let error = from(|_| None, Path::new("/sa")).unwrap_err();
        assert_eq!(error, InClusterError::NotInPod("KUBERNETES_SERVICE_HOST"));
    }
}
