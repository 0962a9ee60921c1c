//! The attempts of one request. Each cause of a further attempt has a budget of its own.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use http::Response;

use crate::exchange::plan::Replan;
use caller::authz::{SETTLING_ATTEMPTS, SETTLING_PAUSE};

/// The number of retries of a patch that became a PUT (`MaxRetryWhenPatchConflicts` in apiserver's `patch.go`).
pub(crate) const MAX_CONFLICTS: u32 = 5;

/// The maximum number of replaced node ports of one Service. The host names one at a time, and for each, the agent
/// reads all its Services.
const MAX_TAKEN_PORTS: usize = 32;

/// Why a request is planned again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Another client has changed the object.
    Conflict,
    /// The host's RBAC caches may lag behind writes, so its refusal may be out of date. Such a request had no effect.
    Settling,
    /// Another virtual cluster's Service has this node port.
    TakenPort(u16),
}

/// The end of an attempt: it breaks with a response, or continues with another attempt for this cause.
pub(crate) type End<B> = ControlFlow<Response<B>, Cause>;

/// What the attempts so far have shown.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    conflicts: u32,
    settling: u32,
    taken_ports: BTreeSet<u16>,
    /// The version of the object that the last attempt was for.
    version: Option<String>,
}

// === impl Attempts ===

impl Attempts {
    /// The node ports that the host has refused, because they are taken.
    pub(crate) fn taken_ports(&self) -> &BTreeSet<u16> {
        &self.taken_ports
    }

    /// Whether the plan may be made again after a conflict. Call it once for each conflict.
    pub(crate) fn is_solvable(&mut self, replan: &Replan) -> bool {
        match replan {
            Replan::Never => false,
            Replan::AfterConflict => true,
            Replan::IfNewerThan(version) => self.version.replace(version.clone()).as_ref() != Some(version),
        }
    }

    /// Whether the budget of this cause is not spent.
    pub(crate) fn allow(&self, cause: Cause) -> bool {
        match cause {
            Cause::Conflict => self.conflicts < MAX_CONFLICTS,
            Cause::Settling => self.settling < SETTLING_ATTEMPTS,
            Cause::TakenPort(port) => self.taken_ports.len() < MAX_TAKEN_PORTS && !self.taken_ports.contains(&port),
        }
    }

    /// Records the cause of the next attempt. Returns the time to wait before it.
    pub(crate) fn next(&mut self, cause: Cause) -> Duration {
        match cause {
            Cause::Conflict => self.conflicts += 1,
            Cause::Settling => {
                self.settling += 1;
                return SETTLING_PAUSE * self.settling;
            }
            Cause::TakenPort(port) => drop(self.taken_ports.insert(port)),
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend(attempts: &mut Attempts, causes: impl Iterator<Item = Cause>) -> usize {
        let mut spent = 0;
        for cause in causes {
            if !attempts.allow(cause) {
                break;
            }
            attempts.next(cause);
            spent += 1;
        }
        spent
    }

    #[test]
    fn each_cause_has_a_budget_of_its_own() {
        let mut attempts = Attempts::default();
        assert_eq!(spend(&mut attempts, (1..=u16::MAX).map(Cause::TakenPort)), MAX_TAKEN_PORTS);
        assert_eq!(spend(&mut attempts, std::iter::repeat(Cause::Conflict)), MAX_CONFLICTS as usize);
        assert_eq!(spend(&mut attempts, std::iter::repeat(Cause::Settling)), SETTLING_ATTEMPTS as usize);
    }

    #[test]
    fn a_port_is_replaced_once() {
        let mut attempts = Attempts::default();
        assert_eq!(attempts.next(Cause::TakenPort(30080)), Duration::ZERO);
        assert!(!attempts.allow(Cause::TakenPort(30080)) && attempts.allow(Cause::TakenPort(30081)));
    }

    #[test]
    fn the_pause_grows_while_rbac_settles() {
        let mut attempts = Attempts::default();
        assert_eq!([(); 3].map(|()| attempts.next(Cause::Settling)), [1, 2, 3].map(|count| SETTLING_PAUSE * count));
    }

    #[test]
    fn a_conflict_about_the_same_version_is_final() {
        let mut attempts = Attempts::default();
        let of = |version: &str| Replan::IfNewerThan(version.to_owned());
        assert!(!attempts.is_solvable(&Replan::Never) && attempts.is_solvable(&Replan::AfterConflict));
        assert!(attempts.is_solvable(&of("1")) && attempts.is_solvable(&of("2")) && !attempts.is_solvable(&of("2")));
    }
}
