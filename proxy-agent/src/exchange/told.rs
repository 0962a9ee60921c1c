//! What the proxy-server's log hears from here with an answer: as whom the request was made, and whose fault a refusal is.
//! The proxy-server takes both off before the client gets the answer. A refusal of the agent also
//! gets the warnings about the request from here.

use http::{HeaderMap, HeaderValue, header};
use protocol::identity::name_caller;
use protocol::stream::FAULT;

use caller::Caller;

/// What is known of one request, so far.
#[derive(Debug, Default)]
pub(super) struct Told {
    caller: Option<String>,
    /// Warnings for the client, in virtual names.
    warnings: Vec<HeaderValue>,
}

// === impl Told ===

impl Told {
    /// It is known who asks.
    pub(super) fn identified(&mut self, caller: &Caller) {
        self.caller = Some(caller.virtual_name().to_owned());
    }

    /// The agent refuses the request, for which there are these warnings.
    pub(super) fn warned(&mut self, warnings: Vec<HeaderValue>) {
        self.warnings = warnings;
    }

    /// Says it with an answer of the host's.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        // An answer of the host's has no such header of its own: whatever it says there is not ours.
        headers.remove(FAULT);
        match &self.caller {
            Some(caller) => name_caller(headers, caller),
            None => drop(headers.remove(protocol::identity::USER)),
        }
    }

    /// Says it with a refusal of ours. Like an API server, adds the warnings also to a failure (apiserver's
    /// `pkg/endpoints/filters/warning.go`).
    pub(super) fn write_refusal(&self, headers: &mut HeaderMap, fault: &'static str) {
        self.write(headers);
        headers.insert(FAULT, HeaderValue::from_static(fault));
        for warning in &self.warnings {
            headers.append(header::WARNING, warning.clone());
        }
    }
}
