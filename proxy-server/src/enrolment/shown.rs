//! The join tokens that the status shows.
//!
//! The directory can be on a file system that hangs, so the status never reads it. A task does, and at most one thread waits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::tokens::{Token, Tokens};

/// How old the tokens of the status may be.
const PERIOD: Duration = Duration::from_secs(5);

/// The maximum number of files that are read, and of tokens that are shown.
const MAX_FILES: usize = 1000;
const MAX_TOKENS: usize = 100;

/// The tokens that were valid a moment ago. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownTokens(Arc<Mutex<Vec<Token>>>);

// === impl ShownTokens ===

impl ShownTokens {
    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> Vec<Token> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps them up to date. If the directory cannot be read, there are none; `atoll token list` says why.
    pub(crate) async fn keep(self, tokens: Tokens) {
        loop {
            let directory = tokens.clone();
            let look = spawn_blocking(move || directory.look(MAX_FILES, SystemTime::now()));
            let mut found = look.await.ok().and_then(Result::ok).unwrap_or_default();
            found.truncate(MAX_TOKENS);
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
            sleep(PERIOD).await;
        }
    }
}
