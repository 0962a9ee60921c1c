//! Response headers for the proxy-server's access log: the name of the caller, and whose fault a refusal is.
//!
//! The proxy-server removes both before it sends the response to the client. This module also adds the warnings about
//! the request to a refusal of the agent.

use http::{HeaderMap, HeaderValue, header};
use protocol::identity::name_caller;
use protocol::stream::FAULT;

use caller::Caller;

/// What is known about one request so far.
#[derive(Debug, Default)]
pub(crate) struct LogMetadata {
    caller: Option<String>,
    /// Warnings for the client, in virtual names.
    warnings: Vec<HeaderValue>,
}

// === impl LogMetadata ===

impl LogMetadata {
    /// Records the authenticated caller.
    pub(crate) fn identified(&mut self, caller: &Caller) {
        self.caller = Some(caller.virtual_name().to_owned());
    }

    /// Records the warnings for a request that the agent refuses.
    pub(crate) fn warned(&mut self, warnings: Vec<HeaderValue>) {
        self.warnings = warnings;
    }

    /// Adds the headers to a response of the host.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        // Only the agent may set this header, so a value from the host is removed.
        headers.remove(FAULT);
        match &self.caller {
            Some(caller) => name_caller(headers, caller),
            None => drop(headers.remove(protocol::identity::USER)),
        }
    }

    /// Adds the headers to a refusal of the agent. Like an API server, also adds the warnings to a failure
    /// (apiserver's `pkg/endpoints/filters/warning.go`).
    pub(crate) fn write_refusal(&self, headers: &mut HeaderMap, fault: &'static str) {
        self.write(headers);
        headers.insert(FAULT, HeaderValue::from_static(fault));
        for warning in &self.warnings {
            headers.append(header::WARNING, warning.clone());
        }
    }
}
