//! The listener by which clients reach virtual clusters, and its URL for them.

use http::Uri;
use protocol::ClusterName;
use protocol::user_certificate::{ClientAddress, endpoint};
use serde::Deserialize;

/// A listener for clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Through {
    /// The HTTP proxy.
    #[default]
    Proxy,
    /// The endpoint listener.
    Endpoint,
}

// === impl Through ===

impl Through {
    /// How clients reach a virtual cluster if this listener has this URL.
    pub fn address(self, url: &str, name: &ClusterName, domain: &str) -> ClientAddress {
        match self {
            Self::Proxy => ClientAddress { server: endpoint(name, domain), proxy_url: Some(url.to_owned()) },
            Self::Endpoint => ClientAddress { server: format!("{url}/clusters/{name}"), proxy_url: None },
        }
    }

    /// What a URL of this listener must be, unless this is one.
    pub(super) fn mistake(self, url: &str) -> Option<&'static str> {
        let (schemes, form): (&[&str], _) = match self {
            Self::Proxy => (&["http", "https"], "of the form http://HOST:PORT or https://HOST:PORT"),
            Self::Endpoint => (&["https"], "of the form https://HOST:PORT, because `through` is `endpoint`"),
        };
        (!is_base(url, schemes)).then_some(form)
    }
}

/// A scheme, a host, and optionally a port.
fn is_base(url: &str, schemes: &[&str]) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let fits = uri.scheme_str().is_some_and(|scheme| schemes.contains(&scheme));
    // Karmada's aggregated API server panics if the URL of a Cluster contains user information.
    let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    fits && is_plain && !url.ends_with('/') && uri.path() == "/" && uri.query().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_has_a_host_and_no_path() {
        for (url, expect) in [
            ("http://10.0.0.1:8090", true),
            ("https://proxy.example.com", true),
            ("http://[fd00::1]:8090", true),
            ("http://proxy/", false),
            ("http://proxy/x", false),
            ("http://user:secret@proxy:1", false),
            ("socks5://proxy:1", false),
            ("proxy:8090", false),
        ] {
            assert_eq!(Through::Proxy.mistake(url).is_none(), expect, "{url}");
        }
        assert!(Through::Endpoint.mistake("http://proxy:8443").is_some());
    }

    #[test]
    fn the_endpoint_listener_needs_no_proxy() {
        let name = "ke-beijing".parse().unwrap();
        let address = |through: Through| through.address("https://a:1", &name, "atoll.internal");
        let server = |address: &ClientAddress| address.server.clone();
        assert_eq!(server(&address(Through::Proxy)), "https://ke-beijing.atoll.internal:443");
        assert_eq!(address(Through::Proxy).proxy_url.as_deref(), Some("https://a:1"));
        assert_eq!(server(&address(Through::Endpoint)), "https://a:1/clusters/ke-beijing");
        assert_eq!(address(Through::Endpoint).proxy_url, None);
    }
}
