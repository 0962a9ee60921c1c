//! The users of bearer tokens, according to the host.
//!
//! Answers are cached by the SHA-256 of the token. The token itself is not kept.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use host_client::spacing::Turn;
use ops::secret::Secret;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::review_turns::ReviewTurns;
use crate::memo::Memo;
use crate::reviews::TokenUser;
use crate::reviews::key::Key;
use crate::reviews::{ReviewError, Reviews};

/// The time for which a valid token is cached. A deleted service account can be used for this time.
const VALID_TTL: Duration = Duration::from_secs(10);
/// The time for which an invalid token is cached. It is short, because one API server may know a token before the
/// others.
const INVALID_TTL: Duration = Duration::from_secs(1);
/// The maximum number of cached answers. An entry has about 100 bytes, and about 1 KB for a valid token.
const MAX_CACHED: usize = 4096;
/// The maximum number of concurrent reviews of tokens that were valid before, and of all others. A flood of invalid tokens must not
/// exhaust the host's rate limit for the agent, which all virtual clusters share, and must not delay the users of valid tokens.
const MAX_REVIEWS: usize = 32;

/// Tokens and their users.
#[derive(Debug)]
pub(super) struct Tokens<R> {
    reviews: R,
    known: Memo<Key, Option<Arc<TokenUser>>, ReviewError>,
    /// The places of reviews of tokens that were valid before.
    known_places: Semaphore,
    /// Those of all others.
    new_places: Semaphore,
}

/// The claims of a token that are read (RFC 7519 section 4.1.4). They are not trusted: they can only shorten the time
/// for which an answer is cached.
#[derive(Deserialize)]
struct Claims {
    /// Seconds since 1970; may have a fraction.
    exp: Option<f64>,
}

// === impl Tokens ===

impl<R: Reviews> Tokens<R> {
    pub(super) fn new(reviews: R) -> Self {
        let places = || Semaphore::new(MAX_REVIEWS);
        Self { reviews, known: Memo::new(MAX_CACHED), known_places: places(), new_places: places() }
    }

    /// The user of the token. `None` if the host rejects the token. Unless the answer is cached, this waits for one of the `turns` of
    /// the virtual cluster.
    pub(super) async fn user(
        &self,
        token: &Secret,
        turns: &ReviewTurns,
    ) -> Result<Option<(Key, Arc<TokenUser>)>, ReviewError> {
        let token = token.expose();
        let key = Key::of_token(token);
        if let Some(user) = self.known.cached(key) {
            return Ok(user.map(|user| (key, user)));
        }
        // Before `ask`, whose answer other virtual clusters may wait for, and before a place, which they may need.
        let turn = turns.take(&key).await?;
        let places = if turn.is_some() { &self.new_places } else { &self.known_places };
        let ask = async || {
            let _place = places.acquire().await;
            Ok(self.reviews.token_review(token).await?.map(Arc::new))
        };
        let keep = |user: &Option<Arc<TokenUser>>| match user {
            Some(_) => lifetime(token, SystemTime::now()),
            None => Some(INVALID_TTL),
        };
        let user = self.known.get(key, ask, keep).await;
        turn.into_iter().for_each(Turn::end);
        let user = user?;
        if user.is_none() {
            turns.forget(&key);
        }
        Ok(user.map(|user| (key, user)))
    }
}

/// The time for which a valid token is cached: at most until it expires, if it contains that time.
fn lifetime(token: &str, now: SystemTime) -> Option<Duration> {
    let Some(end) = expiry(token) else { return Some(VALID_TTL) };
    let left = end.duration_since(now).ok()?;
    Some(left.min(VALID_TTL)).filter(|left| !left.is_zero())
}

/// The expiry in a JSON Web Token. `None` for other tokens.
fn expiry(token: &str) -> Option<SystemTime> {
    let mut parts = token.split('.');
    let (_header, claims, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    let Claims { exp } = serde_json::from_slice(&claims).ok()?;
    // A time before 1970 is in the past. A time that cannot be represented never comes.
    let since = Duration::try_from_secs_f64(exp?.max(0.0)).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(since)
}

#[cfg(test)]
mod tests;
