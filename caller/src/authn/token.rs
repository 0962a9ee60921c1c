//! Whom a bearer token stands for, as the host says.
//!
//! Answers are remembered under the token's SHA-256; the token itself is kept nowhere.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ops::secret::Secret;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::memo::Memo;
use crate::reviews::TokenUser;
use crate::reviews::key::Key;
use crate::reviews::{ReviewError, Reviews};

/// How long a good token is believed. A service account that is deleted can go on for as long.
const GOOD: Duration = Duration::from_secs(10);
/// How long a bad one is disbelieved. Short: a token may be known to one API server before it is to the next.
const BAD: Duration = Duration::from_secs(1);
/// Answers remembered. An entry is about 100 bytes, and about 1 KB for a good token.
const REMEMBERED: usize = 4096;
/// Tokens that the host is asked about at a time. A flood of bad tokens must not use up the host's patience with the
/// agent, which all virtual clusters share.
const AT_A_TIME: usize = 32;

/// Tokens and their users.
#[derive(Debug)]
pub(super) struct Tokens<R> {
    reviews: R,
    known: Memo<Key, Option<Arc<TokenUser>>, ReviewError>,
    asking: Semaphore,
}

/// What is read of a token's claims (RFC 7519 section 4.1.4). Nothing is believed because of it: it can only make
/// an answer be forgotten earlier.
#[derive(Deserialize)]
struct Claims {
    /// Seconds since 1970; may have a fraction.
    exp: Option<f64>,
}

// === impl Tokens ===

impl<R: Reviews> Tokens<R> {
    pub(super) fn new(reviews: R) -> Self {
        Self { reviews, known: Memo::new(REMEMBERED), asking: Semaphore::new(AT_A_TIME) }
    }

    /// The token's user; `None` if the host knows nobody.
    pub(super) async fn user(&self, token: &Secret) -> Result<Option<(Key, Arc<TokenUser>)>, ReviewError> {
        let token = token.expose();
        let key = Key::of_token(token);
        let ask = async || {
            let _turn = self.asking.acquire().await;
            Ok(self.reviews.token_review(token).await?.map(Arc::new))
        };
        let keep = |user: &Option<Arc<TokenUser>>| match user {
            Some(_) => lifetime(token, SystemTime::now()),
            None => Some(BAD),
        };
        Ok(self.known.get(key, ask, keep).await?.map(|user| (key, user)))
    }
}

/// How long a good token is believed: never past its own end, if it says one.
fn lifetime(token: &str, now: SystemTime) -> Option<Duration> {
    let Some(end) = expiry(token) else { return Some(GOOD) };
    let left = end.duration_since(now).ok()?;
    Some(left.min(GOOD)).filter(|left| !left.is_zero())
}

/// The end that a JSON Web Token says of itself; `None` for other tokens.
fn expiry(token: &str) -> Option<SystemTime> {
    let mut parts = token.split('.');
    let (_header, claims, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    let Claims { exp } = serde_json::from_slice(&claims).ok()?;
    // Before 1970 is long ago; beyond what can be said is never.
    let since = Duration::try_from_secs_f64(exp?.max(0.0)).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(since)
}

#[cfg(test)]
mod tests;
