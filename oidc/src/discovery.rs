//! The metadata of an issuer (OpenID Connect Discovery 1.0 section 3, RFC 8414).

use serde::Deserialize;

use crate::https::{Client, HttpError};
use crate::url::HttpsUrl;

/// The part that is used here.
#[derive(Clone, Debug, Deserialize)]
pub struct Metadata {
    /// Must be the issuer that was asked.
    issuer: String,
    jwks_uri: String,
    /// Where tokens are issued.
    #[serde(default)]
    pub token_endpoint: Option<String>,
    /// Where people log in (RFC 6749 section 3.1).
    #[serde(default)]
    pub authorization_endpoint: Option<String>,
    /// Where a device gets its code (RFC 8628 section 4).
    #[serde(default)]
    pub device_authorization_endpoint: Option<String>,
    /// The scopes that clients can request.
    #[serde(default)]
    pub scopes_supported: Vec<String>,
}

/// The metadata cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// It cannot be read.
    #[error("cannot read {url}")]
    Http {
        /// Where it should be.
        url: String,
        /// Why.
        source: HttpError,
    },
    /// Its issuer is another one, so its keys belong to other tokens.
    #[error("the metadata at {url} has the issuer {found:?}")]
    OtherIssuer {
        /// Where it is.
        url: String,
        /// The issuer in it.
        found: String,
    },
    /// An endpoint is no HTTPS URL.
    #[error("the metadata has no HTTPS URL as {0}")]
    Endpoint(&'static str),
}

// === impl Metadata ===

impl Metadata {
    /// Reads the metadata of an issuer.
    pub async fn read(client: &Client, issuer: &HttpsUrl) -> Result<Self, DiscoveryError> {
        let url = format!("{}/.well-known/openid-configuration", issuer.as_str().trim_end_matches('/'));
        let parsed = url.parse().map_err(|_| DiscoveryError::Endpoint("issuer"))?;
        let metadata: Self = match client.get(&parsed).await {
            Ok(metadata) => metadata,
            Err(source) => return Err(DiscoveryError::Http { url, source }),
        };
        if metadata.issuer != issuer.as_str() {
            return Err(DiscoveryError::OtherIssuer { url, found: metadata.issuer });
        }
        Ok(metadata)
    }

    /// Where the keys are.
    pub fn keys(&self) -> Result<HttpsUrl, DiscoveryError> {
        self.jwks_uri.parse().map_err(|_| DiscoveryError::Endpoint("jwks_uri"))
    }
}
