//! Authentication: the caller, and the caller's identity on the host.
//!
//! [`Authenticator::authenticate`] takes what proves an identity out of a request: the certificate that the proxy-server
//! verified, or a bearer token that the host knows. Tokens of the host that belong to no service account are accepted only
//! if the configuration says so ([`HostTokens`]).
//!
//! Reading order: [`Authenticator::authenticate`], `credential` (credentials in headers), `token` (the user of a token),
//! [`host_tokens`].

mod callers;
mod credential;
pub mod host_tokens;
mod token;

#[cfg(test)]
mod tests;

use http::HeaderMap;
use kube_wire::Status;
use rewrite::Mapping;
use tracing::{debug, warn};

use host_client::Host;

use crate::identity::host_user::{ACCOUNTS, ACCOUNTS_OF, AUTHENTICATED};
use crate::identity::{ANONYMOUS, Account, Caller, HostUser, Inexpressible, Kind};
use crate::reviews::{ReviewError, Reviews, TokenUser};
pub use callers::KnownCallers;
use credential::Credentials;
pub use host_tokens::{BadPrefix, HostTokens};
use token::Tokens;

/// `CredentialIDKey` of the same file: an extra field that audit logs tell credentials by.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

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
    #[error("no credential of the request is good in this virtual cluster")]
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
            let made = |identity| Caller::of_certificate(mapping, identity);
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
                    let made = || Caller::of_token(mapping, host_tokens, &user);
                    if let Some(caller) = known.of_token(mapping, key, &user, made) {
                        return Ok(caller);
                    }
                    debug!(user = user.name, cluster = %mapping.cluster(), "the token's user is not of this cluster");
                }
                Ok(None) => debug!(cluster = %mapping.cluster(), "the host does not know the token"),
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
            None => Ok(Caller::anonymous(mapping)),
        }
    }
}

// === impl Caller ===

impl Caller {
    fn of_certificate(mapping: &Mapping, identity: protocol::identity::Identity) -> Result<Self, Inexpressible> {
        let extra = identity.credential.map(|id| (CREDENTIAL_ID.to_owned(), vec![id])).into_iter().collect();
        let host = HostUser::stranger(mapping, &identity.user, &identity.groups, identity.uid, extra)?;
        Ok(Self::new(host, identity.user, Kind::Certificate))
    }

    /// `None` if the user is a service account of somebody else, or nobody here, or cannot be written down.
    fn of_token(mapping: &Mapping, host_tokens: Option<&HostTokens>, user: &TokenUser) -> Option<Self> {
        let uid = Some(user.uid.clone()).filter(|uid| !uid.is_empty());
        let extra = user.extra.clone().into_iter().collect();
        let Some(account) = Account::parse(&user.name) else {
            let host_tokens = host_tokens?;
            let virtual_name = host_tokens.name(&user.name)?;
            let groups = host_tokens.groups(&user.groups);
            let host = HostUser::stranger(mapping, &virtual_name, &groups, uid, extra).ok()?;
            return Some(Self::new(host, virtual_name, Kind::Token));
        };
        let namespace = mapping.member(account.namespace.as_bytes())?;
        let virtual_name = Account { namespace: namespace.as_str(), ..account }.to_string();
        let host = HostUser::account(mapping, &user.name, &user.groups, uid, extra).ok()?;
        Some(Self::new(host, virtual_name, Kind::ServiceAccount))
    }

    /// Whom a token stands for, in the names of the virtual cluster; `None` if it is nobody there.
    pub fn shown(mapping: &Mapping, host_tokens: Option<&HostTokens>, user: TokenUser) -> Option<TokenUser> {
        let caller = Self::of_token(mapping, host_tokens, &user)?;
        let (name, kind) = (caller.virtual_name().to_owned(), caller.kind);
        let groups = if kind == Kind::Token {
            let own = host_tokens.map(|host_tokens| host_tokens.groups(&user.groups)).unwrap_or_default();
            own.into_iter().chain([AUTHENTICATED.to_owned()]).collect()
        } else {
            let shown = user.groups.into_iter().filter_map(|group| match group.strip_prefix(ACCOUNTS_OF) {
                Some(of) => Some(format!("{ACCOUNTS_OF}{}", mapping.member(of.as_bytes())?)),
                None => matches!(&*group, AUTHENTICATED | ACCOUNTS).then_some(group),
            });
            shown.collect()
        };
        Some(TokenUser { name, groups, ..user })
    }

    fn anonymous(mapping: &Mapping) -> Self {
        let host = HostUser::anonymous(mapping);
        Self::new(host, ANONYMOUS.to_owned(), Kind::Anonymous)
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
