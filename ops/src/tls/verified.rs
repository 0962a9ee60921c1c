//! A cache of recently verified chains of client certificates.
//!
//! A client that opens a connection for each request sends the same chain every time, and verifying it is a third of
//! the cost of such a connection. What is *not* here: the proof that the client holds the key of its certificate. Every
//! full handshake verifies that signature (`CertificateVerify`, RFC 8446 section 4.4.3), because it covers the
//! handshake itself.

mod entries;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;

use super::peer::PeerIdentity;
use entries::{AuthorityId, Entries, Entry};

/// The maximum age of an entry. It limits the effect of a bug here, and the memory for clients that have left.
const MAX_AGE: Duration = Duration::from_secs(300);

/// The maximum length of a chain, in bytes. A client may add certificates that nobody needs.
const MAX_BYTES: usize = 8 * 1024;

/// The chains that one [`super::ClientCa`] has accepted. A reload creates a new authority, which has none. All
/// authorities share one budget.
///
/// Refusals are not cached: a refused client does not return soon, and strangers could fill the cache.
#[derive(Debug)]
pub(super) struct VerifiedChains {
    all: Arc<All>,
    authority: AuthorityId,
}

/// Those of all authorities.
#[derive(Debug, Default)]
struct All {
    hasher: RandomState,
    entries: Mutex<Entries>,
}

static ALL: LazyLock<Arc<All>> = LazyLock::new(Arc::default);

// === impl VerifiedChains ===

impl VerifiedChains {
    /// Of a new authority.
    pub(super) fn new() -> Self {
        Self::among(Arc::clone(&ALL))
    }

    fn among(all: Arc<All>) -> Self {
        let authority = all.entries().new_authority();
        Self { all, authority }
    }

    /// The identity of exactly this chain, if it was verified and is still valid at the time `now`.
    pub(super) fn get(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Option<Arc<PeerIdentity>> {
        let hash = self.all.hasher.hash_one(chain);
        let entry = self.all.entries().get(self.authority, hash).filter(|entry| entry.is_valid(now))?;
        // If two chains have the same hash, one of them is verified each time.
        (entry.identity.chain == chain).then_some(entry.identity)
    }

    /// Caches the identity of a chain that was verified at the time `now`.
    pub(super) fn insert(&self, identity: Arc<PeerIdentity>, now: SystemTime) {
        let length = identity.chain.iter().map(|certificate| certificate.len()).sum::<usize>();
        if length > MAX_BYTES {
            return;
        }
        let end = identity.valid_until;
        let until = now.checked_add(MAX_AGE).map_or(end, |oldest| oldest.min(end));
        let hash = self.all.hasher.hash_one(&*identity.chain);
        self.all.entries().insert(self.authority, hash, Entry::new(identity, now..until, length));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.entries().len(self.authority)
    }
}

impl Drop for VerifiedChains {
    fn drop(&mut self) {
        self.all.entries().forget(self.authority);
    }
}

// === impl All ===

impl All {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Nothing that can panic leaves an entry half written, so a poisoned map is consistent.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
