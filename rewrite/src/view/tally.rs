//! What remains of the guarded fields of pod specifications, for both encodings.

use crate::Guard;
use crate::guard::Toleration;
use crate::json::Outcome;

/// The remains of the guarded fields in the pod specifications of an object.
#[derive(Clone, Copy, Default)]
pub(super) struct Remainders {
    pub(super) node_selector: Remainder,
    pub(super) tolerations: Remainder,
}

/// The remains of a field without the guard. If there are several pod specifications, the smallest.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Remainder {
    /// Elements that a client may have written, or the field did not contain the guard.
    #[default]
    Something,
    /// Only what the host adds to every pod, if it is a pod.
    Admitted,
    /// Nothing, so the field is removed too.
    Nothing,
}

/// The elements of a guarded field so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    kept: usize,
    /// The kept elements that the host adds to every pod.
    admitted: usize,
    removed: usize,
}

// === impl Remainders ===

impl Remainders {
    /// One more pod specification.
    pub(super) fn add(&mut self, other: Self) {
        self.node_selector = self.node_selector.max(other.node_selector);
        self.tolerations = self.tolerations.max(other.tolerations);
    }
}

// === impl Tally ===

impl Tally {
    /// Counts an element, which is kept if it is `Keep`.
    pub(super) fn count(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Keep => self.kept += 1,
            Outcome::Remove => self.removed += 1,
        }
        outcome
    }

    /// Counts a toleration, or another value instead of one.
    pub(super) fn toleration(&mut self, guard: &Guard, found: Option<&Toleration>) -> Outcome {
        let hidden = found.is_some_and(|found| guard.toleration(found).is_some());
        if !hidden && found.is_some_and(Toleration::is_admitted) {
            self.admitted += 1;
        }
        self.count(if hidden { Outcome::Remove } else { Outcome::Keep })
    }

    /// What happens to the field itself.
    pub(super) fn field(self) -> Outcome {
        if self.remainder() == Remainder::Nothing { Outcome::Remove } else { Outcome::Keep }
    }

    pub(super) fn remainder(self) -> Remainder {
        match self {
            Self { removed: 0, .. } => Remainder::Something,
            Self { kept: 0, .. } => Remainder::Nothing,
            Self { kept, admitted, .. } if kept == admitted => Remainder::Admitted,
            Self { .. } => Remainder::Something,
        }
    }
}
