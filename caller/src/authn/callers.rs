//! Caches the callers of recent requests, so that their names and headers are not built for each request. [`KnownCallers`]
//! also has the [`ReviewTurns`] of its virtual cluster, and tells them which tokens are valid.
//!
//! An entry only saves work: whether a credential is valid is decided before, for each request. Each virtual cluster has
//! [`KnownCallers`] of its own with a limit, so that none can evict the entries of others, and they go with it.

use std::sync::{Arc, Mutex, PoisonError};

use protocol::identity::IdentityHeaders;
use rewrite::{ClusterName, Mapping, VirtualNamespace};

use super::review_turns::ReviewTurns;
use crate::identity::host_user::ACCOUNTS_OF;
use crate::identity::{Account, Caller};
use crate::memo::Recent;
use crate::reviews::TokenUser;
use crate::reviews::key::Key;

/// The number of callers that are kept for one virtual cluster, of certificates and of tokens each. With
/// [`MAX_IDENTITY`], they have at most a few MB.
const MAX_CALLERS: usize = 256;

/// An identity that takes more memory is not kept, in bytes. Most have less than 1,000.
const MAX_IDENTITY: usize = 4 * 1024;

/// The memory of a name besides its text, in bytes: a string, a header with its name, and their allocations.
const PER_NAME: usize = 128;

/// The callers of recent requests to one virtual cluster. It is dropped when the cluster is removed.
#[derive(Debug)]
pub struct KnownCallers {
    cluster: ClusterName,
    reviews: ReviewTurns,
    known: Mutex<CachedCaller>,
}

#[derive(Debug)]
struct CachedCaller {
    /// The caller of the last request with a certificate, because the next request is often of the same one.
    last: Option<(IdentityHeaders, Caller)>,
    by_certificate: Recent<IdentityHeaders, Caller>,
    by_token: Recent<Key, OfToken>,
}

/// The service account of a token.
#[derive(Debug)]
struct OfToken {
    /// The answer of the host from which the caller was made. A later answer about the same token is another value.
    user: Arc<TokenUser>,
    /// The namespace by its virtual name.
    namespace: VirtualNamespace,
    caller: Caller,
}

// === impl KnownCallers ===

impl KnownCallers {
    /// No callers, for a new virtual cluster.
    pub fn new(cluster: ClusterName) -> Self {
        let known =
            CachedCaller { last: None, by_certificate: Recent::new(MAX_CALLERS), by_token: Recent::new(MAX_CALLERS) };
        Self { cluster, reviews: ReviewTurns::new(), known: Mutex::new(known) }
    }

    /// The turns of this virtual cluster's token reviews.
    pub(super) fn reviews(&self) -> &ReviewTurns {
        &self.reviews
    }

    /// The caller with a client certificate.
    pub(super) fn of_certificate(
        &self,
        mapping: &Mapping,
        identity: IdentityHeaders,
        make: impl FnOnce(&IdentityHeaders) -> Option<Caller>,
    ) -> Option<Caller> {
        let known = self.known(mapping, |known| {
            if let Some((_, caller)) = known.last.as_ref().filter(|(last, _)| *last == identity) {
                return Some(caller.clone());
            }
            let caller = known.by_certificate.get(&identity)?.clone();
            known.last = Some((identity.clone(), caller.clone()));
            Some(caller)
        });
        if let Some(caller) = known.flatten() {
            return Some(caller);
        }
        let caller = make(&identity)?;
        if identity.lengths().map(|length| PER_NAME + length).sum::<usize>() <= MAX_IDENTITY {
            self.known(mapping, |known| known.by_certificate.insert(identity, caller.clone()));
        }
        Some(caller)
    }

    /// The caller with a valid token, if it belongs to this virtual cluster.
    pub(super) fn of_token(
        &self,
        mapping: &Mapping,
        key: Key,
        user: &Arc<TokenUser>,
        make: impl FnOnce() -> Option<Caller>,
    ) -> Option<Caller> {
        let make = || make().inspect(|_| self.reviews.record_valid(key));
        let Some(namespace) = kept_namespace(mapping, user) else { return make() };
        let known = self.known(mapping, |known| {
            let of_token = known.by_token.get(&key)?;
            let is_same = Arc::ptr_eq(&of_token.user, user) && of_token.namespace == *namespace;
            is_same.then(|| of_token.caller.clone())
        });
        if let Some(caller) = known.flatten() {
            return Some(caller);
        }
        let caller = make()?;
        let of_token = OfToken { user: Arc::clone(user), namespace: namespace.clone(), caller: caller.clone() };
        self.known(mapping, |known| known.by_token.insert(key, of_token));
        Some(caller)
    }

    /// `None` if this is not the cluster of the mapping.
    fn known<T>(&self, mapping: &Mapping, then: impl FnOnce(&mut CachedCaller) -> T) -> Option<T> {
        // Every change is complete before anything can panic.
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        (*mapping.cluster() == self.cluster).then(|| then(&mut known()))
    }
}

/// The namespace of a service account, if its caller depends on no other one, and is not too long to be kept.
fn kept_namespace<'m>(mapping: &'m Mapping, user: &TokenUser) -> Option<&'m VirtualNamespace> {
    let account = Account::parse(&user.name)?;
    let is_own = |group: &String| group.strip_prefix(ACCOUNTS_OF).is_none_or(|of| of == account.namespace);
    let extra = user.extra.iter().flat_map(|(key, values)| values.iter().chain([key]));
    let length: usize = user.groups.iter().chain(extra).map(|name| PER_NAME + name.len()).sum();
    (length <= MAX_IDENTITY && user.groups.iter().all(is_own)).then(|| mapping.member(account.namespace.as_bytes()))?
}
