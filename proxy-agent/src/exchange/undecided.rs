//! A request in the phase `decide`.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rewrite::request::Report;
use rewrite::{Mapping, View};

use crate::exchange::call::Call;
use crate::exchange::findings::Findings;
use crate::exchange::ports::Ports;

/// A call about which the agent decides, with what the decision has found so far. It exists only within `decide`, which
/// returns the findings, and for a read within `authorise`. All functions of the phase share it, so the findings are behind
/// locks. No other task has it.
pub(crate) struct Undecided<'c> {
    call: &'c Call<'c>,
    findings: Mutex<Findings>,
    /// The node ports of the Service that is written.
    ports: Mutex<Option<Ports>>,
}

// === impl Undecided ===

impl<'c> Undecided<'c> {
    pub(super) fn new(call: &'c Call<'c>) -> Self {
        Self { call, findings: Mutex::default(), ports: Mutex::default() }
    }

    /// What the decision has found.
    pub(super) fn into_findings(self) -> Findings {
        self.findings.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the decision has found so far.
    pub(super) fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node ports of the Service that is written; `None` for any other request.
    pub(super) fn ports(&self) -> MutexGuard<'_, Option<Ports>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the client sees objects of the host.
    pub(super) fn view(&self, mapping: Mapping) -> View {
        self.call.view(mapping, &self.findings())
    }

    /// Stores the namespaces that a body names, because the response may name them, too.
    pub(super) fn note(&self, report: &Report) {
        self.findings().note(report);
    }
}

impl<'c> Deref for Undecided<'c> {
    type Target = Call<'c>;

    fn deref(&self) -> &Self::Target {
        self.call
    }
}
