//! How an agent gets the certificate of a user of one of its virtual clusters.
//!
//! ```text
//! agent                                              proxy-server (listeners.agents)
//!   POST /atoll/user       the agent's certificate   -->  certificate of the cluster's client CA, and its address
//! ```
//! The agent needs it for the kubeconfig that a VirtualCluster asks for. It creates the key, as for its own certificate. The
//! proxy-server issues certificates only for clusters that the agent has added, and only if its configuration says so: such an
//! agent already sees all requests to these clusters, and no other agent serves them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ClusterName, JsonBody};

/// The path of the request.
pub const USER_PATH: &str = "/atoll/user";

/// The URL of a virtual cluster for clients of the HTTP proxy. `domain` is that of the proxy-server.
pub fn endpoint(cluster: impl fmt::Display, domain: &str) -> String {
    format!("https://{cluster}.{domain}:443")
}

/// A user of a virtual cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// The name of the user in the virtual cluster.
    #[serde(rename = "user")]
    pub name: String,
    /// The groups of the user. `system:masters` may do everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// The body of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserCertificateRequest {
    /// The virtual cluster.
    pub cluster: ClusterName,
    /// The user.
    #[serde(flatten)]
    pub user: User,
    /// A certificate signing request in PEM. Only its key counts.
    pub request: String,
}

/// The response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserCertificate {
    /// The certificate and its intermediates, in PEM.
    pub certificate: String,
    /// The CAs of the proxy-server, in PEM.
    #[serde(rename = "serverCA")]
    pub server_ca: String,
    /// The address of the cluster.
    #[serde(flatten)]
    pub address: ClientAddress,
}

/// How clients reach a virtual cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientAddress {
    /// The `server` of a kubeconfig.
    pub server: String,
    /// The `proxy-url` of a kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "proxyURL")]
    pub proxy_url: Option<String>,
}

// === impl User ===

impl User {
    /// The maximum number of groups.
    pub const MAX_GROUPS: usize = 16;
    /// The maximum length of the name and of a group, in bytes.
    pub const MAX_LENGTH: usize = 253;

    /// What is wrong with it, for people.
    pub fn mistake(&self) -> Option<String> {
        let (groups, max) = (self.groups.len(), Self::MAX_GROUPS);
        if groups > max {
            return Some(format!("there are {groups} groups, and at most {max} are allowed"));
        }
        let mut texts = std::iter::once(&self.name).chain(&self.groups);
        let wrong =
            texts.find(|text| text.is_empty() || text.len() > Self::MAX_LENGTH || text.chars().any(char::is_control));
        let max = Self::MAX_LENGTH;
        wrong.map(|_| format!("the user and each group need 1 to {max} bytes without control characters"))
    }
}

impl JsonBody for UserCertificateRequest {}

impl JsonBody for UserCertificate {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn user(name: &str, groups: &[&str]) -> User {
        User { name: name.to_owned(), groups: groups.iter().map(|group| (*group).to_owned()).collect() }
    }

    #[test]
    fn users_are_checked() {
        let many = ["g"; User::MAX_GROUPS + 1];
        for (user, is_valid) in [
            (user("jane", &[]), true),
            (user("jane", &["system:masters", "a b"]), true),
            (user("jane", &many[1..]), true),
            (user("jane", &many), false),
            (user("", &[]), false),
            (user("jane", &[""]), false),
            (user("ja\nne", &[]), false),
            (user(&"j".repeat(User::MAX_LENGTH), &[]), true),
            (user(&"j".repeat(User::MAX_LENGTH + 1), &[]), false),
        ] {
            assert_eq!(user.mistake().is_none(), is_valid, "{user:?}");
        }
    }

    #[test]
    fn bodies_have_an_inverse() {
        let cluster = "ke-beijing".parse().unwrap();
        let request = UserCertificateRequest { cluster, user: user("jane", &["dev"]), request: "csr".to_owned() };
        assert_eq!(UserCertificateRequest::decode(&request.encode()), Some(request));
        let address = ClientAddress { server: "https://a".to_owned(), proxy_url: Some("http://b".to_owned()) };
        let issued = UserCertificate { certificate: "c".to_owned(), server_ca: "ca".to_owned(), address };
        assert_eq!(UserCertificate::decode(&issued.encode()), Some(issued));
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_no_bodies(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(UserCertificateRequest::decode(&bytes), None);
            prop_assert_eq!(UserCertificate::decode(&bytes), None);
        }
    }
}
