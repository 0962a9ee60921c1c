//! Waiting for something to become true.

use std::sync::mpsc;
use std::time::{Duration, SystemTime};

/// Calls `check` until it is `Ok`, for at most `limit`; then its last error is the result. The pause grows from 10 ms to
/// a quarter of a second.
pub fn eventually<T>(limit: Duration, mut check: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let end = SystemTime::now() + limit;
    let mut wait = Duration::from_millis(10);
    loop {
        match check() {
            Ok(value) => return Ok(value),
            Err(error) if SystemTime::now() >= end => {
                return Err(error.context(format!("not within {limit:?}")));
            }
            Err(_) => pause(wait),
        }
        wait = (wait * 2).min(Duration::from_millis(250));
    }
}

/// Does nothing for so long. For what is to stay as it is; what is to become true is waited for by [`eventually`].
pub fn pause(wait: Duration) {
    // Nothing is ever sent: the time-out is the pause.
    let (sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv_timeout(wait);
    drop(sender);
}
