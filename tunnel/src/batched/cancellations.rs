//! The delay of cancellations: RST_STREAM frames with the code CANCEL.

use std::future::Future as _;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// How long cancellations wait for other frames.
pub(super) const CANCELLATION_DELAY: Duration = Duration::from_millis(20);

/// The first bytes of an RST_STREAM frame (RFC 9113, section 6.4): the length of its payload, and its type.
const RESET_BEGINS: [u8; 4] = [0, 0, 4, 3];

/// The last bytes of an RST_STREAM frame that cancels a stream: the code CANCEL.
const RESET_ENDS: [u8; 4] = [0, 0, 0, 8];

/// The length of an RST_STREAM frame.
const RESET_LENGTH: usize = 13;

/// The maximum number of cancellations that wait. With more, all are written at once.
const MAX_CANCELLATIONS: usize = 16;

/// The timer of waiting cancellations. It can be left over after another write has sent them, until the next turn.
#[derive(Debug, Default)]
pub(super) struct CancellationDelay(Option<Pin<Box<Sleep>>>);

/// A cancellation of stream 9.
#[cfg(test)]
pub(super) const CANCELLATION: [u8; RESET_LENGTH] = [0, 0, 4, 3, 0, 0, 0, 0, 9, 0, 0, 0, 8];

// === impl CancellationDelay ===

impl CancellationDelay {
    /// Whether the bytes that wait are cancellations, and may wait for more. If so, the task of `cx` wakes up when they must be written.
    pub(super) fn delays(&mut self, waiting: &[u8], cx: &mut Context<'_>) -> bool {
        if !are_cancellations(waiting) {
            self.0 = None;
            return false;
        }
        let until = self.0.get_or_insert_with(|| Box::pin(sleep(CANCELLATION_DELAY)));
        let is_over = until.as_mut().poll(cx).is_ready();
        if is_over {
            self.0 = None;
        }
        !is_over
    }
}

/// Whether these bytes are a few RST_STREAM frames with the code CANCEL, and nothing else. Bytes from the middle of another frame can
/// look the same. They are then written up to 20 ms later, which does no harm.
fn are_cancellations(bytes: &[u8]) -> bool {
    let mut frames = bytes.chunks(RESET_LENGTH);
    let is_cancellation =
        |frame: &[u8]| frame.len() == RESET_LENGTH && frame.starts_with(&RESET_BEGINS) && frame.ends_with(&RESET_ENDS);
    (1..=MAX_CANCELLATIONS).contains(&frames.len()) && frames.all(is_cancellation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_few_cancellations_wait() {
        let refusal = [0, 0, 4, 3, 0, 0, 0, 0, 9, 0, 0, 0, 7];
        assert!(are_cancellations(&CANCELLATION) && are_cancellations(&CANCELLATION.repeat(MAX_CANCELLATIONS)));
        for other in [&[][..], &refusal, &CANCELLATION[1..], b"a body of any sort", &[0, 0, 4, 3, 0, 0, 0, 8]] {
            assert!(!are_cancellations(other), "{other:?}");
            assert!(!are_cancellations(&[&CANCELLATION, other].concat()) || other.is_empty(), "{other:?}");
        }
        assert!(!are_cancellations(&CANCELLATION.repeat(MAX_CANCELLATIONS + 1)));
    }
}
