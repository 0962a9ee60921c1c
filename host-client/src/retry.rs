//! Decides whether a request may be sent again. No other code decides this.

use http::Method;

use super::exchange::Failure;
use super::limits::MAX_RESENDS;

/// The number of times that one request was sent again, by reason.
#[derive(Debug)]
pub(super) struct Retries {
    is_read: bool,
    unprocessed: u32,
    broken: u32,
}

// === impl Retries ===

impl Retries {
    pub(super) fn new(method: &Method) -> Self {
        Self { is_read: matches!(*method, Method::GET | Method::HEAD), unprocessed: 0, broken: 0 }
    }

    /// Whether to send it again. A request that was certainly not processed can always be sent again (RFC 9113 section
    /// 8.7). If the connection broke, only a read is sent again, and only once. RFC 9110 section 9.2.2 would also allow
    /// PUT and DELETE, but Kubernetes responds to a repeated DELETE with 404, and to a repeated PUT with 409.
    pub(super) fn should_repeat(&mut self, failure: &Failure) -> bool {
        match failure {
            Failure::Unprocessed(_) => {
                self.unprocessed += 1;
                self.unprocessed <= MAX_RESENDS
            }
            Failure::ConnectionLost(_) => {
                self.broken += 1;
                self.is_read && self.broken <= 1
            }
            Failure::Inexpressible(_) | Failure::StreamReset(_) | Failure::Body(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use h2::Reason;

    use super::*;

    fn allowed(method: &Method, failure: &Failure) -> u32 {
        let mut retries = Retries::new(method);
        let mut allowed = 0;
        while retries.should_repeat(failure) {
            allowed += 1;
        }
        allowed
    }

    #[test]
    fn only_safe_requests_are_repeated_a_few_times() {
        let error = || h2::Error::from(Reason::INTERNAL_ERROR);
        for (method, lost) in [(Method::GET, 1), (Method::HEAD, 1), (Method::POST, 0), (Method::DELETE, 0)] {
            assert_eq!(allowed(&method, &Failure::Unprocessed(error())), MAX_RESENDS);
            assert_eq!(allowed(&method, &Failure::ConnectionLost(error())), lost);
            assert_eq!(allowed(&method, &Failure::StreamReset(error())), 0);
            assert_eq!(allowed(&method, &Failure::Body("gone".into())), 0);
        }
    }
}
