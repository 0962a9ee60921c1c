//! Authentication: the caller, and the caller's identity on the host.
//!
//! [`Authenticator::authenticate`] removes the credentials from a request: the certificate that the proxy-server
//! verified, or a bearer token that the host accepts. Tokens of the host that belong to no service account are accepted
//! only if the configuration says so ([`HostTokens`]).
//!
//! Reading order: [`Authenticator::authenticate`], `credential` (credentials in headers), `token` (the user of a token),
//! `review_turns` (when the host may review a token), `proof` (the caller that a credential proves), [`host_tokens`].

mod callers;
mod credential;
pub mod host_tokens;
mod proof;
mod review_turns;
mod token;

#[cfg(test)]
mod tests;

use http::HeaderMap;
use kube_wire::Status;
use protocol::identity::IdentityHeaders;
use rewrite::Mapping;
use tracing::{debug, warn};

use host_client::Host;

use crate::identity::Caller;
use crate::reviews::{ReviewError, Reviews};
pub use callers::KnownCallers;
use credential::Credentials;
pub use host_tokens::{BadPrefix, HostTokens};
pub use proof::shown;
use token::Tokens;

/// Authenticates callers. All virtual clusters share one, because the owner of a token does not depend on the cluster.
#[derive(Debug)]
pub struct Authenticator<R = Host> {
    tokens: Tokens<R>,
}

/// The caller is not authenticated.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unauthenticated {
    /// None of the credentials is valid in this virtual cluster. The reasons are only logged.
    #[error("no credential of the request is valid in this virtual cluster")]
    Invalid,
    /// There is no answer of the host to the review.
    #[error(transparent)]
    Review(#[from] ReviewError),
}

// === impl Authenticator ===

impl<R: Reviews> Authenticator<R> {
    /// An authenticator that sends token reviews to `reviews`.
    pub fn new(reviews: R) -> Self {
        Self { tokens: Tokens::new(reviews) }
    }

    /// The caller in the virtual cluster of `mapping`, which accepts `host_tokens`, and whose recent callers are in
    /// `known`. Removes all credentials from the headers, whether they are used or not.
    ///
    /// The order is kube-apiserver's (`pkg/kubeapiserver/authenticator/config.go`): a certificate, then each token. The
    /// first valid one is used, and invalid ones have no effect. Only if all are invalid, the request is refused.
    pub async fn authenticate(
        &self,
        mapping: &Mapping,
        known: &KnownCallers,
        host_tokens: Option<&HostTokens>,
        headers: &mut HeaderMap,
    ) -> Result<Caller, Unauthenticated> {
        let Credentials { certificate, tokens, mut any_invalid } = Credentials::take(headers);
        if let Some(identity) = certificate {
            if let Some(caller) = known.of_certificate(mapping, identity, |identity| of_certificate(mapping, identity))
            {
                return Ok(caller);
            }
            any_invalid = true;
        }
        let mut unanswered = None;
        for token in &tokens {
            match self.tokens.user(token, known.reviews()).await {
                Ok(Some((key, user))) => {
                    let made = || proof::of_token(mapping, host_tokens, &user);
                    if let Some(caller) = known.of_token(mapping, key, &user, made) {
                        return Ok(caller);
                    }
                    debug!(user = user.name, cluster = %mapping.cluster(), "the user of the token does not belong to this virtual cluster");
                }
                Ok(None) => debug!(cluster = %mapping.cluster(), "the host cluster rejected the token"),
                Err(error) => unanswered = Some(error),
            }
            any_invalid = true;
        }
        match unanswered {
            // Each request of a flood is refused like this.
            Some(error @ ReviewError::Busy) => {
                debug!(%error, cluster = %mapping.cluster(), "a token could not be verified");
                Err(error.into())
            }
            Some(error) => {
                warn!(%error, cluster = %mapping.cluster(), "a token could not be verified");
                Err(error.into())
            }
            None if any_invalid => Err(Unauthenticated::Invalid),
            None => Ok(proof::anonymous(mapping)),
        }
    }
}

/// The caller that a client certificate proves. `None` if its headers are malformed, or if it has other names than HTTP
/// headers can have.
fn of_certificate(mapping: &Mapping, headers: &IdentityHeaders) -> Option<Caller> {
    let caller = proof::of_certificate(mapping, headers.decode().ok()?);
    if caller.is_err() {
        debug!("the certificate's names cannot be written in HTTP headers");
    }
    caller.ok()
}

/// 401 with the message of kube-apiserver, or the Status of the [`ReviewError`] (429 or 503).
impl From<&Unauthenticated> for Status {
    fn from(error: &Unauthenticated) -> Self {
        match error {
            Unauthenticated::Invalid => Self::unauthorized("Unauthorized"),
            Unauthenticated::Review(error) => Self::from(error),
        }
    }
}
