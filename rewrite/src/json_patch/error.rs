//! Why a patch fails.

use crate::json::{Fault, Malformed, Step};

/// The patch does not apply to the object, or costs too much. Kubernetes does not tell clients why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the JSON patch does not apply")]
pub struct DoesNotApply;

impl From<Malformed> for DoesNotApply {
    fn from(_: Malformed) -> Self {
        Self
    }
}

impl Fault for DoesNotApply {
    fn within(self, _: Step<'_>) -> Self {
        self
    }
}
