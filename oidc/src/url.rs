//! URLs of issuers.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use rustls_pki_types::ServerName;

/// An absolute URL with the scheme `https`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpsUrl {
    /// As it was written: issuers are compared byte by byte (OpenID Connect Discovery 1.0 section 4.3).
    text: String,
    uri: Uri,
    name: ServerName<'static>,
}

/// The text is not such a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// It cannot be parsed, or has no host.
    #[error("it is not a URL with a host")]
    Malformed,
    /// Tokens and keys must not cross a network in plain text.
    #[error("its scheme must be https")]
    Scheme,
    /// It has a user name or a password.
    #[error("it must not contain a user name or a password")]
    UserInfo,
    /// An issuer has none.
    #[error("it must not contain a query")]
    Query,
    /// An issuer has none.
    #[error("it must not contain a fragment")]
    Fragment,
}

// === impl HttpsUrl ===

impl HttpsUrl {
    /// The URL of an issuer, with the restrictions of kube-apiserver (`validateURL` in apiserver's
    /// `pkg/apis/apiserver/validation/validation.go`).
    pub fn issuer(text: &str) -> Result<Self, InvalidUrl> {
        let url: Self = text.parse()?;
        if url.uri.query().is_some() { Err(InvalidUrl::Query) } else { Ok(url) }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host and the port for a connection.
    pub(crate) fn address(&self) -> (&str, u16) {
        let host = self.uri.host().unwrap_or_default();
        (host.trim_start_matches('[').trim_end_matches(']'), self.uri.port_u16().unwrap_or(443))
    }

    /// The name that the certificate must have.
    pub(crate) fn server_name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }
}

impl FromStr for HttpsUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        // RFC 3986 section 2. `Uri` accepts other bytes in a path, and a terminal may execute them.
        if !text.is_ascii() {
            return Err(InvalidUrl::Malformed);
        }
        // `Uri` drops a fragment silently.
        if text.contains('#') {
            return Err(InvalidUrl::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| InvalidUrl::Malformed)?;
        if uri.scheme_str() != Some("https") {
            return Err(if uri.scheme().is_some() { InvalidUrl::Scheme } else { InvalidUrl::Malformed });
        }
        let authority = uri.authority().ok_or(InvalidUrl::Malformed)?;
        if authority.as_str().contains('@') {
            return Err(InvalidUrl::UserInfo);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(|_| InvalidUrl::Malformed)?;
        Ok(Self { text: text.to_owned(), name, uri })
    }
}

impl fmt::Display for HttpsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_a_bare_https_url() {
        for (text, expected) in [
            ("http://a.example", InvalidUrl::Scheme),
            ("a.example", InvalidUrl::Malformed),
            ("https://", InvalidUrl::Malformed),
            ("https://user:secret@a.example", InvalidUrl::UserInfo),
            ("https://a.example/?tenant=1", InvalidUrl::Query),
            ("https://a.example/#x", InvalidUrl::Fragment),
        ] {
            assert_eq!(HttpsUrl::issuer(text), Err(expected), "{text}");
        }
        for (text, address) in [
            ("https://a.example", ("a.example", 443)),
            ("https://a.example:8443/realms/one/", ("a.example", 8443)),
            ("https://[::1]:5556/dex", ("::1", 5556)),
        ] {
            let url = HttpsUrl::issuer(text).unwrap();
            assert_eq!((url.address(), url.as_str()), (address, text));
        }
        assert!("https://a.example/keys?version=2".parse::<HttpsUrl>().is_ok(), "only an issuer has no query");
    }
}
