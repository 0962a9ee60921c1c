//! The entries of all authorities, in one budget.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use crate::tls::PeerIdentity;

/// The maximum number of entries of one authority.
pub(super) const MAX_CHAINS: usize = 256;

/// The maximum memory of all entries, in bytes. This is enough for the clients of the last minutes: an entry usually
/// takes 2 to 3 KiB.
pub(super) const BUDGET: usize = 8 * 1024 * 1024;

/// The memory of an entry besides its certificates and names, in bytes.
const PER_ENTRY: usize = 512;

/// The number of an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AuthorityId(u64);

/// A chain that was verified.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Contains the chain, byte by byte.
    pub(super) identity: Arc<PeerIdentity>,
    /// If the clock is set back to before this range, the chain is verified again.
    valid: Range<SystemTime>,
    bytes: usize,
}

/// All entries.
#[derive(Debug, Default)]
pub(super) struct Entries {
    authorities: HashMap<AuthorityId, OfAuthority>,
    /// Ordered by the end of their validity.
    ends: BTreeSet<(SystemTime, AuthorityId, u64)>,
    bytes: usize,
    last: u64,
}

/// By the hash of the chain.
#[derive(Debug, Default)]
struct OfAuthority {
    entries: HashMap<u64, Entry>,
    bytes: usize,
}

// === impl Entry ===

impl Entry {
    /// `length` is that of the chain. The names of the identity are in its first certificate.
    pub(super) fn new(identity: Arc<PeerIdentity>, valid: Range<SystemTime>, length: usize) -> Self {
        Self { identity, valid, bytes: 2 * length + PER_ENTRY }
    }

    pub(super) fn is_valid(&self, now: SystemTime) -> bool {
        self.valid.contains(&now)
    }
}

// === impl Entries ===

impl Entries {
    pub(super) fn new_authority(&mut self) -> AuthorityId {
        self.last += 1;
        AuthorityId(self.last)
    }

    pub(super) fn get(&self, authority: AuthorityId, hash: u64) -> Option<Entry> {
        self.authorities.get(&authority)?.entries.get(&hash).cloned()
    }

    /// Adds an entry that was verified now. To make room, removes expired entries first, then the oldest of this
    /// authority if it has too many, and then those of the authority that uses the most memory.
    pub(super) fn insert(&mut self, authority: AuthorityId, hash: u64, entry: Entry) {
        self.remove(authority, hash);
        let now = entry.valid.start;
        while let Some(&(_, of, ended)) = self.ends.first().filter(|(end, ..)| *end <= now) {
            self.remove(of, ended);
        }
        while self.count(authority) >= MAX_CHAINS {
            self.evict(authority);
        }
        while self.bytes + entry.bytes > BUDGET
            && let Some((largest, _)) = self.authorities.iter().max_by_key(|(_, of)| of.bytes)
        {
            self.evict(*largest);
        }
        self.ends.insert((entry.valid.end, authority, hash));
        self.bytes += entry.bytes;
        let of_authority = self.authorities.entry(authority).or_default();
        of_authority.bytes += entry.bytes;
        of_authority.entries.insert(hash, entry);
    }

    /// Removes an authority.
    pub(super) fn forget(&mut self, authority: AuthorityId) {
        let Some(of_authority) = self.authorities.remove(&authority) else { return };
        self.bytes -= of_authority.bytes;
        for (hash, entry) in of_authority.entries {
            self.ends.remove(&(entry.valid.end, authority, hash));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self, authority: AuthorityId) -> usize {
        assert_eq!(self.ends.len(), self.authorities.values().map(|of| of.entries.len()).sum::<usize>());
        assert_eq!(self.bytes, self.authorities.values().map(|of| of.bytes).sum::<usize>());
        self.count(authority)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn count(&self, authority: AuthorityId) -> usize {
        self.authorities.get(&authority).map_or(0, |of| of.entries.len())
    }

    /// Removes the entry of this authority that expires first.
    fn evict(&mut self, authority: AuthorityId) {
        let entries = self.authorities.get(&authority).into_iter().flat_map(|of| &of.entries);
        if let Some(hash) = entries.min_by_key(|(_, entry)| entry.valid.end).map(|(hash, _)| *hash) {
            self.remove(authority, hash);
        }
    }

    fn remove(&mut self, authority: AuthorityId, hash: u64) {
        let Some(of_authority) = self.authorities.get_mut(&authority) else { return };
        let Some(entry) = of_authority.entries.remove(&hash) else { return };
        of_authority.bytes -= entry.bytes;
        if of_authority.entries.is_empty() {
            self.authorities.remove(&authority);
        }
        self.bytes -= entry.bytes;
        self.ends.remove(&(entry.valid.end, authority, hash));
    }
}
