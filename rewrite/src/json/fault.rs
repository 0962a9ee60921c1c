//! The errors of a text, and their positions.

use std::fmt;

/// The text is not valid JSON for Go's `encoding/json`, or has a duplicate key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed JSON at byte {offset}: {defect}")]
pub struct Malformed {
    /// The byte where reading stopped, counted from the start of the text that was scanned.
    pub offset: usize,
    /// The kind of error.
    pub defect: Defect,
}

/// The kinds of [`Malformed`].
// As wide as a word: see `Escapes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(usize)]
pub enum Defect {
    /// The text ends within a value.
    #[error("unexpected end")]
    UnexpectedEnd,
    /// A byte that the grammar does not allow here.
    #[error("unexpected byte")]
    UnexpectedByte,
    /// A string contains an unescaped control character.
    #[error("control character in a string")]
    ControlCharacter,
    /// A backslash does not begin a valid escape.
    #[error("unknown escape")]
    Escape,
    /// More than 10,000 containers are open.
    #[error("nested too deeply")]
    TooDeep,
    /// Something follows the value.
    #[error("data after the value")]
    TrailingData,
}

/// An error that collects its path in the object while callers return it.
pub trait Fault: From<Malformed> {
    /// Adds `step`, which is one level further out than the known path.
    #[must_use]
    fn within(self, step: Step<'_>) -> Self;
}

/// One step of a path into an object.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A member of an object, by its decoded key.
    Key(&'a str),
    /// A key of a map of strings, by its decoded form.
    MapKey(&'a str),
    /// An element of an array.
    Element(usize),
}

/// A path in an object, as in field errors of Kubernetes (`spec.nodeSelector[location]`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath {
    /// Innermost first, which is the order in which an error collects them.
    steps: Vec<String>,
}

// === impl Malformed ===

impl Fault for Malformed {
    /// Only the offset is kept.
    fn within(self, _: Step<'_>) -> Self {
        self
    }
}

// === impl FieldPath ===

impl FieldPath {
    /// A path of one member.
    pub fn of(key: &str) -> Self {
        let mut path = Self::default();
        path.push_outer(Step::Key(key));
        path
    }

    /// Adds one step further out.
    pub fn push_outer(&mut self, step: Step<'_>) {
        self.steps.push(match step {
            Step::Key(key) if key.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                format!(".{key}")
            }
            Step::Key(key) | Step::MapKey(key) => format!("[{key}]"),
            Step::Element(index) => format!("[{index}]"),
        });
    }

    /// Whether the path names the object itself.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.steps.iter().rev().enumerate() {
            f.write_str(if position == 0 { step.trim_start_matches('.') } else { step })?;
        }
        Ok(())
    }
}
