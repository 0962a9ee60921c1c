//! Bearer tokens that an agent has recently accepted.
//!
//! Only the agent can verify a token. Its response names the user. For some time, further requests with that token count
//! for this user. This decides only which limits apply: the agent authenticates every request.

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
    accepted: Mutex<HashMap<u64, AcceptedToken>>,
}

#[derive(Debug)]
struct AcceptedToken {
    user: User,
    since: Instant,
}

// === impl Tokens ===

impl Tokens {
    /// The digest of a credential of a cluster's client. The credential itself is not kept.
    pub fn digest(&self, cluster: &ClusterName, credential: &[u8]) -> u64 {
        self.hasher.hash_one((cluster.as_str(), credential))
    }

    /// The user of an accepted token.
    pub fn user(&self, digest: u64) -> Option<User> {
        let accepted = self.accepted();
        accepted.get(&digest).filter(|token| token.since.elapsed() < LIFETIME).map(|token| User::clone(&token.user))
    }

    /// Records that an agent has accepted the token.
    pub fn learn(&self, digest: u64, user: User) {
        let mut accepted = self.accepted();
        if accepted.len() >= MAX_TOKENS && !accepted.contains_key(&digest) {
            accepted.retain(|_, token| token.since.elapsed() < LIFETIME);
            if accepted.len() >= MAX_TOKENS {
                accepted.clear();
            }
        }
        accepted.insert(digest, AcceptedToken { user, since: Instant::now() });
    }

    /// Records that an agent has refused the token.
    pub fn forget(&self, digest: u64) {
        self.accepted().remove(&digest);
    }

    fn accepted(&self) -> MutexGuard<'_, HashMap<u64, AcceptedToken>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_token_is_proven_for_one_cluster_and_for_some_time() {
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
    async fn the_number_of_remembered_tokens_is_limited() {
        let tokens = Tokens::default();
        for digest in 0..3 * MAX_TOKENS as u64 {
            tokens.learn(digest, "jane".into());
        }
        assert!(tokens.accepted().len() <= MAX_TOKENS);
        assert!(tokens.user(3 * MAX_TOKENS as u64 - 1).is_some());
    }
}
