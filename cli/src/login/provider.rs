//! The issuer, and its token endpoint.

use std::fmt;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use oidc::HttpsUrl;
use oidc::discovery::Metadata;
use oidc::https::{Client, HttpError, encode_form};
use ops::files::Watched;
use ops::secret::Secret;
use ops::tls::ServerCa;
use serde::Deserialize;

use super::session::Session;

/// The scopes that are requested if the issuer supports them: the usual claims, and a refresh token.
const DEFAULT_SCOPES: [&str; 3] = ["email", "groups", "offline_access"];

/// An issuer for one client.
#[derive(Debug)]
pub(super) struct Provider {
    client: Client,
    issuer: HttpsUrl,
    metadata: Metadata,
    token_endpoint: HttpsUrl,
    pub(super) client_id: String,
    /// For clients that have a secret.
    authorization: Option<HeaderValue>,
    /// Separated by spaces.
    pub(super) scopes: String,
}

/// There is no token.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenError {
    /// The issuer refuses.
    #[error("the issuer refuses: {0}")]
    Refused(Refusal),
    /// There is no usable response.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The issuer is only an OAuth 2.0 server, or the scope `openid` is missing.
    #[error("the issuer has returned no ID token")]
    NoIdToken,
    /// The token is for somebody else.
    #[error(transparent)]
    Unusable(anyhow::Error),
}

/// An error response (RFC 6749 section 5.2).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Refusal {
    pub(super) error: String,
    #[serde(default)]
    error_description: String,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
    refresh_token: Option<String>,
}

// === impl Provider ===

impl Provider {
    /// Reads the metadata of the issuer.
    pub(super) async fn discover(
        authorities: ServerCa,
        issuer: HttpsUrl,
        client_id: &str,
        secret: Option<&str>,
        scopes: &[String],
    ) -> anyhow::Result<Self> {
        let client = Client::new(Watched::fixed(authorities));
        let metadata = Metadata::read(&client, &issuer).await?;
        let token_endpoint = endpoint(metadata.token_endpoint.as_deref(), "token_endpoint")?;
        let authorization = secret.map(|secret| basic(client_id, secret)).transpose()?;
        let scopes = scopes_of(&metadata, scopes);
        Ok(Self { client, issuer, metadata, token_endpoint, client_id: client_id.to_owned(), authorization, scopes })
    }

    /// Whether the issuer has a page for people.
    pub(super) fn has_login_page(&self) -> bool {
        self.metadata.authorization_endpoint.is_some()
    }

    /// The page for people.
    pub(super) fn login_page(&self) -> anyhow::Result<HttpsUrl> {
        endpoint(self.metadata.authorization_endpoint.as_deref(), "authorization_endpoint")
    }

    /// Where a device gets its code.
    pub(super) fn device_endpoint(&self) -> anyhow::Result<HttpsUrl> {
        endpoint(self.metadata.device_authorization_endpoint.as_deref(), "device_authorization_endpoint")
    }

    /// Posts a form as this client.
    pub(super) async fn post(&self, url: &HttpsUrl, form: &[(&str, &str)]) -> Result<Response<Bytes>, TokenError> {
        let mut form = form.to_vec();
        form.push(("client_id", &self.client_id));
        let response = self.client.post(url, &form, self.authorization.clone()).await?;
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        // 400, and 401 if the client is not known.
        match serde_json::from_slice(response.body()) {
            Ok(refusal) => Err(TokenError::Refused(refusal)),
            Err(_) => Err(HttpError::Status(response.status()).into()),
        }
    }

    /// Requests tokens.
    pub(super) async fn tokens(&self, form: &[(&str, &str)]) -> Result<Session, TokenError> {
        let response = self.post(&self.token_endpoint, form).await?;
        let tokens: Tokens = serde_json::from_slice(response.body()).map_err(|_| HttpError::Json)?;
        let id_token = tokens.id_token.ok_or(TokenError::NoIdToken)?;
        Session::new(id_token, tokens.refresh_token, (self.issuer.as_str(), &self.client_id))
            .map_err(TokenError::Unusable)
    }

    /// Renews a session (RFC 6749 section 6).
    pub(super) async fn refresh(&self, token: &Secret) -> Result<Session, TokenError> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", token.expose())];
        Ok(self.tokens(&form).await?.or_refresh_token(token))
    }
}

fn endpoint(url: Option<&str>, name: &str) -> anyhow::Result<HttpsUrl> {
    let url = url.with_context(|| format!("the issuer has no {name}; choose another --grant-type"))?;
    url.parse().with_context(|| format!("the {name} of the issuer"))
}

/// RFC 6749 section 2.3.1.
fn basic(client_id: &str, secret: &str) -> anyhow::Result<HeaderValue> {
    let encode = |text| encode_form(&[(text, "")]).trim_end_matches('=').to_owned();
    let credentials = STANDARD.encode(format!("{}:{}", encode(client_id), encode(secret)));
    HeaderValue::from_str(&format!("Basic {credentials}")).context("--client-secret")
}

fn scopes_of(metadata: &Metadata, requested: &[String]) -> String {
    let supported = |scope: &&str| metadata.scopes_supported.iter().any(|supported| supported == scope);
    let mut scopes = vec!["openid"];
    if requested.is_empty() {
        scopes.extend(DEFAULT_SCOPES.into_iter().filter(supported));
    } else {
        scopes.extend(requested.iter().map(String::as_str).filter(|scope| *scope != "openid"));
    }
    scopes.join(" ")
}

/// Text of the issuer, for a terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().filter(|char| !char.is_control() && !is_direction(*char)).take(500).collect()
}

/// A character that changes the direction of the text after it (Unicode Standard Annex 9).
fn is_direction(char: char) -> bool {
    matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

// === impl Refusal ===

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.error))?;
        match printable(&self.error_description) {
            description if description.is_empty() => Ok(()),
            description => write!(f, ": {description}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_those_that_the_issuer_supports() {
        let metadata: Metadata = serde_json::from_str(
            r#"{"issuer": "https://a.example", "jwks_uri": "https://a.example/keys",
                "scopes_supported": ["openid", "groups", "offline_access", "admin"]}"#,
        )
        .unwrap();
        assert_eq!(scopes_of(&metadata, &[]), "openid groups offline_access");
        assert_eq!(scopes_of(&metadata, &["roles".to_owned(), "openid".to_owned()]), "openid roles");
    }

    #[test]
    fn a_secret_is_encoded_before_it_is_a_password() {
        let value = basic("a b", "c:d").unwrap();
        let decoded = STANDARD.decode(value.to_str().unwrap().strip_prefix("Basic ").unwrap()).unwrap();
        assert_eq!(decoded, b"a+b:c%3Ad");
    }

    #[test]
    fn an_issuer_cannot_control_the_terminal() {
        let refusal = Refusal { error: "access_denied\u{1b}[2J".to_owned(), error_description: "no\r\n".to_owned() };
        assert_eq!(refusal.to_string(), "access_denied[2J: no");
    }
}
