//! Authentication: the caller, and the caller's identity on the host.
//!
//! [`Authenticator::authenticate`] takes what proves an identity out of a request: the certificate that the proxy-server
//! verified, or a bearer token that the host knows. Tokens of the host that belong to no service account are accepted only
//! if the configuration says so ([`HostTokens`]).
//!
//! Reading order: [`Authenticator::authenticate`], `credential` (credentials in headers), `token` (the user of a token),
//! `proof` (the caller that it proves), [`host_tokens`].

mod callers;
mod credential;
pub mod host_tokens;
mod proof;
mod token;

#[cfg(test)]
mod tests;

use http::HeaderMap;
use kube_wire::Status;
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

/// Authenticates callers. One for all virtual clusters: whose a token is does not depend on where it is shown.
#[derive(Debug)]
pub struct Authenticator<R = Host> {
    tokens: Tokens<R>,
}

/// Nobody knows who asks.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unauthenticated {
    /// There are credentials, and none is good here. Which one and why is logged, not told.
    #[error("no credential of the request is valid in this virtual cluster")]
    Invalid,
    /// The host could not say.
    #[error(transparent)]
    Review(#[from] ReviewError),
}

// === impl Authenticator ===

impl<R: Reviews> Authenticator<R> {
    /// Asks `reviews` about tokens.
    pub fn new(reviews: R) -> Self {
        Self { tokens: Tokens::new(reviews) }
    }

    /// The caller in the virtual cluster of `mapping`, which takes `host_tokens`, and whose recent callers are `known`. All that proves identity is removed from
    /// the headers, used or not.
    ///
    /// The order is kube-apiserver's (`pkg/kubeapiserver/authenticator/config.go`): a certificate, then each token. The
    /// first that is good counts, and a bad one beside it does no harm; only if all are bad is the request refused.
    pub async fn authenticate(
        &self,
        mapping: &Mapping,
        known: &KnownCallers,
        host_tokens: Option<&HostTokens>,
        headers: &mut HeaderMap,
    ) -> Result<Caller, Unauthenticated> {
        let Credentials { certificate, tokens, mut any_bad } = Credentials::take(headers);
        if let Some(identity) = certificate {
            let made = |identity| proof::of_certificate(mapping, identity);
            if let Ok(caller) = known.of_certificate(mapping, identity, made) {
                return Ok(caller);
            }
            debug!("the certificate's names cannot be written in HTTP headers");
            any_bad = true;
        }
        let mut unanswered = None;
        for token in &tokens {
            match self.tokens.user(token).await {
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
            any_bad = true;
        }
        match unanswered {
            Some(error) => {
                warn!(%error, cluster = %mapping.cluster(), "a token could not be verified");
                Err(error.into())
            }
            None if any_bad => Err(Unauthenticated::Invalid),
            None => Ok(proof::anonymous(mapping)),
        }
    }
}

/// 401 with the word that kube-apiserver has for it, or 503.
impl From<&Unauthenticated> for Status {
    fn from(error: &Unauthenticated) -> Self {
        match error {
            Unauthenticated::Invalid => Self::unauthorized("Unauthorized"),
            Unauthenticated::Review(error) => Self::from(error),
        }
    }
}
