//! How an agent gets its certificate, and how it renews it.
//!
//! ```text
//! agent                                              proxy-server (listeners.agents)
//!   GET  /atoll/ca         server not verified  -->  its CA
//!        the digest in the token must be that of the CA
//!   POST /atoll/enrol      Bearer ID.SECRET     -->  certificate for the agent of the token
//!   POST /atoll/renew      the old certificate  -->  certificate for the same agent
//! ```
//!
//! The agent creates its key, and sends only a certificate signing request. Like `kubeadm join`, the first request cannot verify the
//! server, and sends nothing secret: the digest in the token proves that the CA is the right one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{AgentId, JsonBody};

/// The path of the CA.
pub const CA_PATH: &str = "/atoll/ca";
/// The path of the first certificate.
pub const ENROL_PATH: &str = "/atoll/enrol";
/// The path of further certificates.
pub const RENEW_PATH: &str = "/atoll/renew";
/// The maximum length of a request or of a response, in bytes.
pub const MAX_BODY: usize = 64 * 1024;

/// What the operator gives to a site: `ID.SECRET.DIGEST`.
///
/// `Debug` does not show the secret. [`JoinToken::expose`] does.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// The credential, without the digest.
    pub credential: TokenCredential,
    /// SHA-256 of the public key (SubjectPublicKeyInfo) of a CA of the proxy-server.
    pub ca_digest: [u8; 32],
}

/// The part of a token that the proxy-server gets.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenCredential {
    /// Names the token. Not secret.
    pub id: String,
    secret: String,
}

/// The text is no [`JoinToken`] or no [`TokenCredential`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a join token has three parts that are separated by dots; `atoll token create` prints it")]
pub struct InvalidToken;

/// The body of a request for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRequest {
    /// A certificate signing request in PEM.
    pub request: String,
}

/// The response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuedCertificate {
    /// The agent whose certificate it is.
    pub agent: AgentId,
    /// The certificate and its intermediates, in PEM.
    pub certificate: String,
    /// The CAs of the proxy-server, in PEM.
    #[serde(rename = "serverCA")]
    pub server_ca: String,
}

/// The numbers of characters of the three parts.
const ID: usize = 10;
const SECRET: usize = 32;
const DIGEST: usize = 64;

// === impl JoinToken ===

impl JoinToken {
    /// The text, with the secret.
    pub fn expose(&self) -> String {
        let mut text = self.credential.expose();
        text.push('.');
        for byte in self.ca_digest {
            // Writing to a String cannot fail.
            let _ = fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
        }
        text
    }
}

impl FromStr for JoinToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let (credential, digest) = text.rsplit_once('.').ok_or(InvalidToken)?;
        if digest.len() != DIGEST || !digest.is_ascii() {
            return Err(InvalidToken);
        }
        let mut ca_digest = [0; 32];
        for (byte, at) in ca_digest.iter_mut().zip((0..DIGEST).step_by(2)) {
            let pair = digest.get(at..at + 2).ok_or(InvalidToken)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| InvalidToken)?;
        }
        Ok(Self { credential: credential.parse()?, ca_digest })
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinToken").field("credential", &self.credential).finish_non_exhaustive()
    }
}

// === impl TokenCredential ===

impl TokenCredential {
    /// A credential of these parts: 10 and 32 lower-case letters and digits.
    pub fn new(id: &str, secret: &str) -> Result<Self, InvalidToken> {
        let is_part = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if !is_part(id, ID) || !is_part(secret, SECRET) {
            return Err(InvalidToken);
        }
        Ok(Self { id: id.to_owned(), secret: secret.to_owned() })
    }

    /// The secret.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The text, with the secret.
    pub fn expose(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }
}

impl FromStr for TokenCredential {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let (id, secret) = text.split_once('.').ok_or(InvalidToken)?;
        Self::new(id, secret)
    }
}

impl fmt::Debug for TokenCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCredential").field("id", &self.id).finish_non_exhaustive()
    }
}

impl JsonBody for CertificateRequest {}

impl JsonBody for IssuedCertificate {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_is_read_as_it_is_written(
            id in "[a-z0-9]{10}", secret in "[a-z0-9]{32}", ca_digest in any::<[u8; 32]>()
        ) {
            let credential = TokenCredential::new(&id, &secret).unwrap();
            let token = JoinToken { credential: credential.clone(), ca_digest };
            prop_assert_eq!(token.expose().parse::<JoinToken>(), Ok(token.clone()));
            prop_assert_eq!(credential.expose().parse::<TokenCredential>(), Ok(credential));
            let shown = format!("{token:?}");
            prop_assert!(!shown.contains(&secret));
        }

        #[test]
        fn other_text_is_no_token(text in ".{0,120}") {
            prop_assert_eq!(text.parse::<JoinToken>(), Err(InvalidToken));
        }

        #[test]
        fn hostile_bodies_are_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(CertificateRequest::decode(&body), None);
            prop_assert_eq!(IssuedCertificate::decode(&body), None);
        }
    }

    #[test]
    fn an_id_is_no_path() {
        let secret = "a".repeat(32);
        for id in ["../../etc/", "a/b/c/d/e/", "ABCDEFGHIJ", "short"] {
            assert!(TokenCredential::new(id, &secret).is_err(), "{id}");
        }
    }
}
