//! The client to which a request is charged, before the agent has authenticated it.
//!
//! A certificate proves the identity of a client at once, and a token of an OIDC issuer after the limits. Only the agent can
//! verify another token, so its response counts for later requests. This module decides only which limits apply.

use std::sync::Arc;

use http::{HeaderMap, StatusCode, header};
use kube_wire::bearer;
use protocol::{ClusterName, identity};

use super::peer::ClientIdentity;
use crate::limits::{Client, Limits, Network, Party, User};

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    user: Option<User>,
    token: Option<Token>,
    /// The digest of the name of the user that it impersonates.
    acts_as: Option<u64>,
}

/// A bearer token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token {
    digest: u64,
    /// Whether the request impersonates. Then the agent's response names the impersonated user, and not that of the token.
    impersonates: bool,
}

/// `ImpersonateUserHeader` in api's `authentication/v1/types.go`.
const IMPERSONATE_USER: &str = "impersonate-user";

/// The number of groups into which the unaccepted credentials of a network are divided, by a hash.
const BUCKETS: u64 = 64;

/// `user.Anonymous` in apiserver's `authentication/user/user.go`.
const ANONYMOUS: &str = "system:anonymous";

// === impl Caller ===

impl Caller {
    /// The caller of a request, by the credential for the cluster.
    pub(super) fn of(
        limits: &Limits,
        cluster: &ClusterName,
        identity: Option<&ClientIdentity>,
        headers: &HeaderMap,
    ) -> Self {
        let acts_as = headers.get(IMPERSONATE_USER).map(|name| limits.tokens.digest(cluster, name.as_bytes()));
        if let Some(identity) = identity {
            return Self { user: Some(User::clone(&identity.user)), token: None, acts_as };
        }
        let Some(credential) = credential(headers) else { return Self { user: None, token: None, acts_as } };
        let digest = limits.tokens.digest(cluster, credential);
        let impersonates = headers.keys().any(|name| name.as_str().starts_with("impersonate-"));
        Self { user: limits.tokens.user(digest), token: Some(Token { digest, impersonates }), acts_as }
    }

    /// Whether the request has no credential. Such a caller can only read version and health, and agents do not read
    /// its bodies.
    pub(super) fn is_anonymous(&self) -> bool {
        self.user.is_none() && self.token.is_none()
    }

    /// A token has been verified here. Later requests with it count for the user at once.
    pub(super) fn prove(&mut self, limits: &Limits, user: &User) {
        if let Some(Token { digest, .. }) = self.token {
            limits.tokens.learn(digest, Arc::clone(user));
        }
        self.user = Some(Arc::clone(user));
    }

    /// The token is refused.
    pub(super) fn forget(&self, limits: &Limits) {
        if let Some(Token { digest, .. }) = self.token {
            limits.tokens.forget(digest);
        }
    }

    /// The user, if proven.
    pub(super) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// The client to which the request is charged.
    pub(super) fn client(&self, network: Network) -> Client {
        self.user.as_ref().map_or(Client::Unproven(network), |user| Client::User(Arc::clone(user)))
    }

    /// The party that is charged if the client abandons the request.
    pub(super) fn party(&self, network: Network) -> Party {
        match (&self.user, self.token) {
            (Some(user), _) => Party::User(Arc::clone(user), self.acts_as),
            (None, Some(token)) => Party::Unproven(network, u8::try_from(token.digest % BUCKETS).unwrap_or_default()),
            (None, None) => Party::Anonymous(network),
        }
    }

    /// Learns from the agent's response. Returns the user if this response proves it.
    pub(super) fn learn(&self, limits: &Limits, status: StatusCode, headers: &HeaderMap) -> Option<User> {
        let Token { digest, impersonates } = self.token?;
        if status == StatusCode::UNAUTHORIZED {
            limits.tokens.forget(digest);
            return None;
        }
        if self.user.is_some() {
            return None;
        }
        let named = identity::caller(headers).filter(|named| named != ANONYMOUS)?;
        let user: User = if impersonates { format!("token {digest:016x}").into() } else { named.into() };
        limits.tokens.learn(digest, Arc::clone(&user));
        Some(user)
    }
}

/// The token in a request, or text that may be one. The agent verifies it.
fn credential(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(header::AUTHORIZATION).map(http::HeaderValue::as_bytes);
    let is_bearer = |value: &&[u8]| value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "));
    bearer.filter(is_bearer).or_else(|| {
        let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL);
        let mut offered = offered.iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        offered.find_map(|one| Some(one.trim_ascii()).filter(|one| one.starts_with(bearer::PROTOCOL.as_bytes())))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use ops::metrics::{Build, Registry};

    use super::*;
    use crate::config;
    use crate::revocations::CertificateId;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| ((*name).parse().unwrap(), HeaderValue::from_static(value)));
        pairs.collect()
    }

    fn limits() -> Arc<Limits> {
        let config = config::Limits::default();
        let connections = config.connections(None, None);
        Limits::new(&config, connections, &Registry::new(Build { component: "test", version: "0" }))
    }

    #[tokio::test]
    async fn a_token_counts_for_its_user_once_an_agent_has_accepted_it() {
        let (limits, cluster) = (limits(), "ke-beijing".parse().unwrap());
        let network = Network::default();
        let caller = |pairs: &[(&'static str, &'static str)]| Caller::of(&limits, &cluster, None, &headers(pairs));
        let first = caller(&[("authorization", "Bearer t")]);
        assert!(!first.is_anonymous() && first.client(network) == Client::Unproven(network));
        let mut answer = headers(&[]);
        identity::name_caller(&mut answer, ANONYMOUS);
        assert_eq!(first.learn(&limits, StatusCode::OK, &answer), None);
        identity::name_caller(&mut answer, "jane");
        assert_eq!(first.learn(&limits, StatusCode::FORBIDDEN, &answer).as_deref(), Some("jane"));
        let second = caller(&[("authorization", "bearer t")]);
        assert!(second.user().is_none(), "the scheme is a part of what is remembered");
        let second = caller(&[("authorization", "Bearer t")]);
        assert_eq!(second.client(network), Client::User("jane".into()));
        assert_eq!(second.learn(&limits, StatusCode::OK, &answer), None);
        assert_eq!(second.learn(&limits, StatusCode::UNAUTHORIZED, &headers(&[])), None);
        assert!(caller(&[("authorization", "Bearer t")]).user().is_none());
    }

    #[tokio::test]
    async fn requests_with_impersonation_count_for_the_token() {
        let (limits, cluster) = (limits(), "ke-beijing".parse().unwrap());
        let pairs = [("authorization", "Bearer t"), ("impersonate-user", "jane")];
        let caller = Caller::of(&limits, &cluster, None, &headers(&pairs));
        let mut answer = headers(&[]);
        identity::name_caller(&mut answer, "jane");
        let user = caller.learn(&limits, StatusCode::OK, &answer).unwrap();
        assert_ne!(&*user, "jane");
        let again = Caller::of(&limits, &cluster, None, &headers(&pairs[..1]));
        assert_eq!(again.user(), Some(&user));
    }

    #[tokio::test]
    async fn a_request_without_a_credential_is_anonymous() {
        let (limits, cluster) = (limits(), "ke-beijing".parse().unwrap());
        for pairs in [&[][..], &[("authorization", "Basic QQ==")], &[("sec-websocket-protocol", "v5.channel.k8s.io")]] {
            assert!(Caller::of(&limits, &cluster, None, &headers(pairs)).is_anonymous(), "{pairs:?}");
        }
        let by_protocol = [("sec-websocket-protocol", "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.dA")];
        assert!(!Caller::of(&limits, &cluster, None, &headers(&by_protocol)).is_anonymous());
        let identity = protocol::Identity { user: "jane".into(), groups: Vec::new(), uid: None, credential: None };
        let proven = ClientIdentity::new(&identity, CertificateId::of_user("jane"));
        assert_eq!(
            Caller::of(&limits, &cluster, Some(&proven), &headers(&[])).user().map(|user| &**user),
            Some("jane")
        );
    }
}
