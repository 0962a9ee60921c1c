//! A violation of a structural rule, and when one is another that has become smaller.

use std::collections::BTreeSet;
use std::fmt;

/// A share is recorded with one percentage point more than it has, and need not be lowered before it has lost two: the
/// shares of all crates change with every line of code.
const MARGIN: usize = 1;
const SLACK: usize = 2;

/// Ordered as in the list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Violation {
    /// A crate with more than its share of the code, in percent.
    Share { package: String, percent: usize },
    /// A type with more methods than a type may have.
    Methods { unit: String, ty: String, count: usize },
    /// Modules that form cycles, all of them together.
    Cycle { unit: String, members: BTreeSet<String> },
}

// === impl Violation ===

impl Violation {
    /// Whether this, as an entry of the list, allows another one.
    pub(super) fn covers(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Share { package, percent }, Self::Share { package: of, percent: now }) => {
                package == of && percent >= now
            }
            (Self::Methods { unit, ty, count }, Self::Methods { unit: of, ty: ty_now, count: now }) => {
                unit == of && ty == ty_now && count >= now
            }
            (Self::Cycle { unit, members }, Self::Cycle { unit: of, members: now }) => {
                unit == of && members.is_superset(now)
            }
            _ => false,
        }
    }

    /// Whether this, as an entry of the list, allows another one and no more.
    pub(super) fn fits(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Share { percent, .. }, Self::Share { percent: now_percent, .. }) => {
                self.covers(now) && percent - now_percent <= SLACK
            }
            _ => self == now,
        }
    }

    /// As it is recorded.
    pub(super) fn to_entry(&self) -> Self {
        match self {
            Self::Share { package, percent } => Self::Share { package: package.clone(), percent: percent + MARGIN },
            Self::Methods { .. } | Self::Cycle { .. } => self.clone(),
        }
    }
}

/// In one line, for a message.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share { package, percent } => write!(f, "share {package} {percent}"),
            Self::Methods { unit, ty, count } => write!(f, "methods {unit} {ty} {count}"),
            Self::Cycle { unit, members } => {
                write!(f, "cycle {unit} of {}:", members.len())?;
                members.iter().try_for_each(|member| write!(f, " {member}"))
            }
        }
    }
}
