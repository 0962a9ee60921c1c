//! Waits until a condition is true.

use std::sync::mpsc;
use std::time::{Duration, SystemTime};

/// Calls `check` until it returns `Ok`, for at most `limit`. Then it returns the last error. The time between two calls
/// grows from 10 ms to 1 s, because most checks run kubectl, which needs 0.1 s of CPU time.
pub fn eventually<T>(limit: Duration, mut check: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let end = SystemTime::now() + limit;
    let mut wait = Duration::from_millis(10);
    loop {
        match check() {
            Ok(value) => return Ok(value),
            Err(error) if SystemTime::now() >= end => {
                return Err(error.context(format!("still failing after {limit:?}")));
            }
            Err(_) => pause(wait),
        }
        wait = (wait * 2).min(Duration::from_secs(1));
    }
}

/// Waits for this time, before a check that nothing has changed. To wait for a change, use [`eventually`].
pub fn pause(wait: Duration) {
    // Nothing is sent, so this waits for the timeout.
    let (sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv_timeout(wait);
    drop(sender);
}
