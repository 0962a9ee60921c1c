//! The address of an API server.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use http::uri::Authority;
use rustls_pki_types::ServerName;

/// The address of an API server: `https://host:port`, with a path prefix if a load balancer requires one
/// (`https://host/k8s/clusters/c-1`).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address {
    authority: Authority,
    /// The path prefix. It is empty, or begins with a slash and does not end with one.
    prefix: String,
    server_name: ServerName<'static>,
}

/// The text is not the address of an API server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is not a URL.
    #[error("{0:?} is not a URL")]
    Malformed(String),
    /// It has no TLS, so credentials would be sent unencrypted.
    #[error("{0:?} does not begin with https://: an API server is reached only with TLS")]
    NotHttps(String),
    /// It has user information, a query, or a host that cannot be in a certificate.
    #[error("{0:?} is not of the form https://host:port")]
    Form(String),
}

// === impl Address ===

impl Address {
    /// The value of `:authority`: host and port. The port is omitted if the configuration omits it.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The prefix of the path of every request.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The host for the resolver, without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        bare(&self.authority)
    }

    /// The port; 443 if none is given.
    pub fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(443)
    }

    /// The name that the certificate must have, unless the configuration names another one.
    pub fn server_name(&self) -> &ServerName<'static> {
        &self.server_name
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let uri: Uri = text.parse().map_err(|_| AddressError::Malformed(text.to_owned()))?;
        if uri.scheme_str() != Some("https") {
            return Err(AddressError::NotHttps(text.to_owned()));
        }
        let form = || AddressError::Form(text.to_owned());
        let authority = uri.authority().ok_or_else(form)?.clone();
        let name = ServerName::try_from(bare(&authority).to_owned()).map_err(|_| form())?;
        let port_is_given = authority.as_str().len() > authority.host().len();
        if authority.as_str().contains('@')
            || (port_is_given && authority.port_u16().is_none())
            || uri.query().is_some()
        {
            return Err(form());
        }
        Ok(Self { authority, prefix: uri.path().trim_end_matches('/').to_owned(), server_name: name })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}{}", self.authority, self.prefix)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn bare(authority: &Authority) -> &str {
    let host = authority.host();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn usual_kubeconfigs_are_accepted() {
        for (text, host, port, prefix) in [
            ("https://127.0.0.1:6443", "127.0.0.1", 6443, ""),
            ("https://api.example.com/", "api.example.com", 443, ""),
            ("https://[fd00::1]:6443", "fd00::1", 6443, ""),
            ("https://lb/k8s/clusters/c-1/", "lb", 443, "/k8s/clusters/c-1"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host(), address.port(), address.prefix()), (host, port, prefix));
            assert_eq!(address.to_string().parse(), Ok(address));
        }
    }

    #[test]
    fn ambiguous_addresses_are_refused() {
        for text in [
            "",
            "10.0.0.1:6443",
            "http://127.0.0.1:8080",
            "https://",
            "https://user@host",
            "https://host:port",
            "https://host:66000",
            "https://host:",
            "https://host?x=1",
            "https://-/",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
