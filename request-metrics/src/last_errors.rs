//! The last errors of one cluster, for its operator.
//!
//! Only errors that the operator can act on: refusals of Atoll for an exceeded limit (429), and failures of Atoll or of
//! what it connects (5xx). Other errors are those of clients.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use ops::columns::Columns;
use ops::date::Moment;
use protocol::Fault;
use serde::{Deserialize, Serialize};

/// The number of errors of a cluster that are kept.
const KEPT: usize = 3;

/// The maximum length of a message, in characters.
const MAX_MESSAGE: usize = 300;

/// An error that Atoll makes.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'m> {
    /// The status code.
    pub code: u16,
    /// Whose fault it is.
    pub fault: Fault,
    /// For programs: the reason of a `metav1.Status`. It can be empty.
    pub reason: &'m str,
    /// For people. It must not contain what a client has sent as a credential, a header or a body.
    pub message: &'m str,
}

/// One of the last errors. Errors that differ only in the digits of their message are the same: a message can contain a
/// time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// When it last happened.
    pub time: Moment,
    /// How often it happened since it has been in the list.
    pub count: u64,
    /// The status code.
    pub code: u16,
    /// Whose fault it is: `client`, `tunnel`, `atoll` or `host`.
    pub fault: String,
    /// For programs: the reason of a `metav1.Status`. It can be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people, the last time.
    pub message: String,
}

/// The last errors of one cluster, the newest first.
#[derive(Debug, Default)]
pub(crate) struct LastErrors(Mutex<VecDeque<LastError>>);

// === impl Failure ===

impl Failure<'_> {
    /// Whether the operator can act on it.
    fn concerns_operator(&self) -> bool {
        self.code == 429 || self.code >= 500
    }

    fn is_like(&self, error: &LastError) -> bool {
        (self.code, self.fault.word(), self.reason) == (error.code, error.fault.as_str(), error.reason.as_str())
            && without_digits(self.message).eq(without_digits(&error.message))
    }
}

fn without_digits(message: &str) -> impl Iterator<Item = char> {
    message.chars().take(MAX_MESSAGE).filter(|char| !char.is_ascii_digit())
}

// === impl LastErrors ===

impl LastErrors {
    /// Adds an error, or counts it if it is in the list.
    pub(crate) fn add(&self, failure: &Failure<'_>) {
        if !failure.concerns_operator() {
            return;
        }
        let message = failure.message.chars().take(MAX_MESSAGE).collect();
        let mut errors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = errors.iter().position(|error| failure.is_like(error)).and_then(|at| errors.remove(at));
        let error = match known {
            Some(error) => LastError { count: error.count.saturating_add(1), time: Moment::now(), message, ..error },
            None => LastError {
                time: Moment::now(),
                count: 1,
                code: failure.code,
                fault: failure.fault.word().to_owned(),
                reason: failure.reason.to_owned(),
                message,
            },
        };
        errors.push_front(error);
        errors.truncate(KEPT);
    }

    /// The errors, the newest first.
    pub(crate) fn all(&self) -> Vec<LastError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

// === impl LastError ===

impl LastError {
    /// A table of the errors of all clusters.
    pub fn table<'e>(now: Moment, clusters: impl IntoIterator<Item = (&'e str, &'e [Self])>) -> Columns {
        let mut table = Columns::new(["LAST ERRORS OF", "AGO", "COUNT", "CODE", "FAULT", "REASON", ""]);
        for (cluster, errors) in clusters {
            for error in errors {
                table.row([
                    cluster,
                    &error.time.age(now.time()).to_string(),
                    &error.count.to_string(),
                    &error.code.to_string(),
                    &error.fault,
                    if error.reason.is_empty() { "-" } else { &error.reason },
                    &error.message,
                ]);
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: u16, message: &str) -> Failure<'_> {
        Failure { code, fault: Fault::Tunnel, reason: "ServiceUnavailable", message }
    }

    fn seen(errors: &LastErrors) -> Vec<(u16, u64, String)> {
        errors.all().into_iter().map(|error| (error.code, error.count, error.message)).collect()
    }

    #[test]
    fn equal_errors_are_counted() {
        let errors = LastErrors::default();
        for message in ["no agent for 9 s", "no tunnel", "no agent for 10 s"] {
            errors.add(&failure(503, message));
        }
        errors.add(&Failure { fault: Fault::Host, ..failure(503, "no tunnel") });
        assert_eq!(
            seen(&errors),
            [(503, 1, "no tunnel".into()), (503, 2, "no agent for 10 s".into()), (503, 1, "no tunnel".into())]
        );
    }

    #[test]
    fn the_list_is_short_and_so_are_its_messages() {
        let errors = LastErrors::default();
        let long = "ü".repeat(2 * MAX_MESSAGE);
        for message in ["a", "b", "c", &long, &long] {
            errors.add(&failure(500, message));
        }
        let all = seen(&errors);
        assert_eq!(all[0], (500, 2, "ü".repeat(MAX_MESSAGE)));
        assert_eq!(all[1..], [(500, 1, "c".into()), (500, 1, "b".into())]);
    }

    #[test]
    fn errors_of_clients_are_left_out() {
        let errors = LastErrors::default();
        for code in [200, 400, 401, 403, 404, 409, 413, 422, 499] {
            errors.add(&failure(code, "the client's"));
        }
        assert!(errors.all().is_empty());
        for code in [429, 500, 504] {
            errors.add(&failure(code, "the operator's"));
        }
        assert_eq!(errors.all().len(), 3);
    }

    #[test]
    fn the_table_names_the_cluster_of_each_error() {
        let errors = LastErrors::default();
        errors.add(&failure(503, "no agent"));
        errors.add(&Failure { reason: "", ..failure(502, "no\ntunnel") });
        let errors = errors.all();
        let now = Moment::from(errors[0].time.time() + std::time::Duration::from_secs(60));
        let table = LastError::table(now, [("ke-beijing", &*errors), ("ke-hangzhou", &[])]);
        let lines: Vec<_> = table.rows().map(|row| row.join(" ")).collect();
        assert!(lines[0].ends_with(" 1 502 tunnel - no tunnel") && lines[0].starts_with("ke-beijing 6"), "{lines:?}");
        assert!(lines[1].ends_with(" 1 503 tunnel ServiceUnavailable no agent") && lines.len() == 2, "{lines:?}");
    }
}
