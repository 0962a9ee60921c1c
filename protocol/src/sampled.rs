//! Whether a request is traced.
//!
//! A client's `traceparent` reaches the agent, too, but a client does not decide what the agent records. So a proxy-server that
//! records traces adds its decision. With `1`, the `traceparent` is that of the proxy-server. An agent that records no traces
//! ignores the header.

use http::header::HeaderMap;
use http::{HeaderName, HeaderValue};

/// The decision. Only the proxy-server sets it, never a client.
pub const SAMPLED: HeaderName = HeaderName::from_static("x-atoll-sampled");

const YES: HeaderValue = HeaderValue::from_static("1");
const NO: HeaderValue = HeaderValue::from_static("0");

/// Whether the proxy-server records the trace of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// It does, so the agent should, too.
    Yes,
    /// It does not.
    No,
}

// === impl Sampled ===

impl Sampled {
    /// Adds the decision to the head of a request.
    pub fn write(self, request: &mut HeaderMap) {
        request.insert(SAMPLED, if self == Self::Yes { YES } else { NO });
    }

    /// Removes the decision from the head of a request. `None` if the proxy-server records no traces.
    pub fn take(request: &mut HeaderMap) -> Option<Self> {
        let value = request.remove(SAMPLED)?;
        Some(if value == YES { Self::Yes } else { Self::No })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decision_is_read_once() {
        for decision in [Sampled::Yes, Sampled::No] {
            let mut headers = HeaderMap::new();
            decision.write(&mut headers);
            assert_eq!((Sampled::take(&mut headers), Sampled::take(&mut headers)), (Some(decision), None));
        }
        let mut unknown = HeaderMap::from_iter([(SAMPLED, HeaderValue::from_static("maybe"))]);
        assert_eq!(Sampled::take(&mut unknown), Some(Sampled::No));
    }
}
