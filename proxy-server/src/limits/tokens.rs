//! Bearer tokens that an agent has recently accepted.
//!
//! Only the agent can verify a token. Its response names the user, and for some time, later requests with that token
//! count for this user. This decides only which limits apply: the agent authenticates every request again.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::ClusterName;
use tokio::time::Instant;

use super::User;

/// How long an accepted token counts as proven.
const LIFETIME: Duration = Duration::from_secs(300);

/// The maximum number of remembered tokens. A forgotten token is proven again with its next request.
const MAX_TOKENS: usize = 20_000;

/// The tokens of all clusters.
#[derive(Debug, Default)]
pub struct Tokens {
    /// The key of the digests, so that nobody can construct two tokens with the same digest.
    hasher: RandomState,
    known: Mutex<HashMap<u64, Known>>,
}

#[derive(Debug)]
struct Known {
    user: User,
    since: Instant,
}

// === impl Tokens ===

impl Tokens {
    /// The digest of a credential of a cluster's client. The credential itself is not kept.
    pub fn digest(&self, cluster: &ClusterName, credential: &[u8]) -> u64 {
        self.hasher.hash_one((cluster.as_str(), credential))
    }

    /// Whose it is.
    pub fn user(&self, digest: u64) -> Option<User> {
        let known = self.known();
        known.get(&digest).filter(|known| known.since.elapsed() < LIFETIME).map(|known| User::clone(&known.user))
    }

    /// Records that an agent has accepted the token.
    pub fn learn(&self, digest: u64, user: User) {
        let mut known = self.known();
        if known.len() >= MAX_TOKENS && !known.contains_key(&digest) {
            known.retain(|_, known| known.since.elapsed() < LIFETIME);
            if known.len() >= MAX_TOKENS {
                known.clear();
            }
        }
        known.insert(digest, Known { user, since: Instant::now() });
    }

    /// Records that an agent has refused the token.
    pub fn forget(&self, digest: u64) {
        self.known().remove(&digest);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_agents_word_is_good_for_one_cluster_and_for_a_while() {
        let tokens = Tokens::default();
        let (beijing, hangzhou) = ("ke-beijing".parse().unwrap(), "ke-hangzhou".parse().unwrap());
        let digest = tokens.digest(&beijing, b"Bearer t");
        tokens.learn(digest, "jane".into());
        assert_eq!(tokens.user(digest).as_deref(), Some("jane"));
        assert_eq!(tokens.user(tokens.digest(&hangzhou, b"Bearer t")), None);
        assert_eq!(tokens.user(tokens.digest(&beijing, b"Bearer u")), None);
        tokio::time::advance(LIFETIME).await;
        assert_eq!(tokens.user(digest), None);
        tokens.learn(digest, "jane".into());
        tokens.forget(digest);
        assert_eq!(tokens.user(digest), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded() {
        let tokens = Tokens::default();
        for digest in 0..3 * MAX_TOKENS as u64 {
            tokens.learn(digest, "jane".into());
        }
        assert!(tokens.known().len() <= MAX_TOKENS);
        assert!(tokens.user(3 * MAX_TOKENS as u64 - 1).is_some());
    }
}
