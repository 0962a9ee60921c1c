//! Chains of client certificates that were verified a moment ago.
//!
//! A client that opens a connection for each request shows the same chain every time, and verifying it is a third of what
//! such a connection costs. What is *not* here: the proof that the client holds the key of its certificate. Every full
//! handshake verifies that signature (`CertificateVerify`, RFC 8446 section 4.4.3), because it covers the handshake itself.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::peer::PeerIdentity;

/// The maximum age of an entry. It bounds the harm of a mistake here, and the memory of clients that are gone.
const MAX_AGE: Duration = Duration::from_secs(300);

/// The maximum number of entries.
const MAX_CHAINS: usize = 256;

/// The maximum length of a chain, in bytes. A client may add certificates that nobody needs. With [`MAX_CHAINS`], this
/// limits one authority to 2 MiB.
const MAX_BYTES: usize = 8 * 1024;

/// The chains that one [`super::ClientCa`] has accepted. A reload makes another authority, whose cache is empty.
///
/// Refusals are not kept: a client that is refused does not come again soon, and strangers could fill the cache.
#[derive(Debug, Default)]
pub(super) struct VerifiedChains {
    hasher: RandomState,
    /// By the hash of the chain. If two chains have the same hash, one of them is verified each time.
    entries: Mutex<HashMap<u64, Entry>>,
}

#[derive(Debug)]
struct Entry {
    /// Contains the chain, byte by byte.
    identity: Arc<PeerIdentity>,
    /// Whoever sets the clock back does not make certificates valid that were not valid then.
    since: SystemTime,
    until: SystemTime,
}

// === impl VerifiedChains ===

impl VerifiedChains {
    /// The identity of this very chain, if it was verified and is still valid at the time `now`.
    pub(super) fn get(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Option<Arc<PeerIdentity>> {
        let hash = self.hasher.hash_one(chain);
        let entries = self.entries();
        let entry = entries.get(&hash)?;
        let is_valid = entry.since <= now && now < entry.until && entry.identity.chain == chain;
        is_valid.then(|| Arc::clone(&entry.identity))
    }

    /// Keeps the identity of a chain that was verified at the time `now`.
    pub(super) fn insert(&self, identity: Arc<PeerIdentity>, now: SystemTime) {
        let chain = &identity.chain;
        if chain.iter().map(|certificate| certificate.len()).sum::<usize>() > MAX_BYTES {
            return;
        }
        // Of all certificates that were sent, also of those that the verifier did not need.
        let Some(end) = first_end(chain) else { return };
        let until = now.checked_add(MAX_AGE).map_or(end, |oldest| oldest.min(end));
        let hash = self.hasher.hash_one(&**chain);
        let mut entries = self.entries();
        if entries.len() >= MAX_CHAINS && !entries.contains_key(&hash) {
            entries.retain(|_, entry| now < entry.until);
        }
        if entries.len() >= MAX_CHAINS && !entries.contains_key(&hash) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.until).map(|(hash, _)| *hash);
            oldest.map(|oldest| entries.remove(&oldest));
        }
        entries.insert(hash, Entry { identity, since: now, until });
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries().len()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        // Nothing that can panic leaves an entry half made, so a poisoned map is whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the first certificate of a chain ends. `None` if one cannot be read.
fn first_end(chain: &[CertificateDer<'_>]) -> Option<SystemTime> {
    let ends = chain.iter().map(|der| {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        Some(super::system_time(certificate.validity().not_after))
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().min()
}

#[cfg(test)]
mod tests;
