//! A violation of a structural rule, and whether one is a smaller version of another.

use std::collections::BTreeSet;
use std::fmt;

/// The list records a share as one percentage point more than it is. It need not be lowered before the share has lost
/// two points, because the shares of all crates change with every line of code.
const MARGIN: usize = 1;
const SLACK: usize = 2;

/// Ordered as in the list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Violation {
    /// A crate with more than its share of the code, in percent.
    Share { package: String, percent: usize },
    /// A type with too many methods.
    Methods { unit: String, ty: String, count: usize },
    /// A set of modules that form cycles.
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

    /// Whether this, as an entry of the list, allows exactly another one.
    pub(super) fn fits(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Share { percent, .. }, Self::Share { percent: now_percent, .. }) => {
                self.covers(now) && percent - now_percent <= SLACK
            }
            _ => self == now,
        }
    }

    /// The form that the list records.
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
