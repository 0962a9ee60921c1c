//! The credentials in the headers of a request.

use http::header::HeaderMap;
use kube_wire::bearer::{self, InvalidToken};
use ops::secret::Secret;
use protocol::identity::IdentityHeaders;

/// All credentials, in the order in which they are tried.
#[derive(Debug)]
pub(super) struct Credentials {
    pub(super) certificate: Option<IdentityHeaders>,
    pub(super) tokens: Vec<Secret>,
    /// There is a credential that cannot be parsed.
    pub(super) any_invalid: bool,
}

// === impl Credentials ===

impl Credentials {
    /// Removes the credentials from the headers, including invalid ones.
    pub(super) fn take(headers: &mut HeaderMap) -> Self {
        let mut taken = Self { certificate: None, tokens: Vec::new(), any_invalid: false };
        match IdentityHeaders::take(headers) {
            // A certificate without a common name identifies no user (`x509.CommonNameUserConversion`).
            Ok(identity) => taken.certificate = identity.filter(|identity| !identity.has_no_name()),
            Err(_) => taken.any_invalid = true,
        }
        for found in bearer::take(headers) {
            match found {
                Ok(token) => taken.tokens.extend(token.map(Secret::from)),
                Err(InvalidToken) => taken.any_invalid = true,
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests;
