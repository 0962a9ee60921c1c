//! The mistakes that are reported when a file is refused.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use super::location::{Located, Location};

/// The maximum number of mistakes. More would not help the operator. It also limits the memory for a hostile file.
const MAX_PROBLEMS: usize = 100;

/// In characters. A message quotes the file, and a value can be as long as the file.
const MAX_MESSAGE: usize = 400;

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    location: Option<Location>,
    message: String,
}

/// Collects mistakes, so that an operator sees all of them at once.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    found: Vec<Problem>,
    beyond: usize,
}

/// Why a configuration is refused: one or more [`Problem`]s, in the order of the file.
///
/// `Display` prints a line for each, as compilers do: `atoll.yaml:7:3: message`.
#[derive(Clone, Debug)]
pub struct ConfigErrors {
    origin: PathBuf,
    problems: Problems,
}

// === impl Problem ===

impl Problem {
    /// A mistake at a location of the file, or one of the file as a whole. Control characters are escaped, and long
    /// messages are cut, because the text may come from the file and go to a terminal.
    pub fn new(location: Option<Location>, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        let mut shown = String::with_capacity(message.len().min(MAX_MESSAGE));
        for (n, character) in message.chars().enumerate() {
            if n == MAX_MESSAGE {
                shown.push_str("...");
                break;
            }
            if character.is_control() {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
        }
        Self { location, message: shown }
    }

    /// Its location, if it has one.
    pub fn location(&self) -> Option<Location> {
        self.location
    }

    /// The message, without the location.
    pub fn message(&self) -> &str {
        &self.message
    }
}

// === impl Problems ===

impl Problems {
    /// Reports a mistake in a value that knows its location.
    pub fn at<T>(&mut self, value: &Located<T>, message: impl fmt::Display) {
        self.push(Problem::new(value.location(), message));
    }

    /// Reports a mistake of the file as a whole, such as a key that is missing because of the value of another.
    pub fn general(&mut self, message: impl fmt::Display) {
        self.push(Problem::new(None, message));
    }

    /// Returns the result of a check, or reports its error at `value`.
    pub fn take<T, U, E: fmt::Display>(&mut self, value: &Located<T>, outcome: Result<U, E>) -> Option<U> {
        outcome.map_err(|error| self.at(value, error)).ok()
    }

    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Ends the collection, and returns the errors of the file `origin`.
    pub fn into_errors(mut self, origin: &Path) -> ConfigErrors {
        // Mistakes without a location come last, because the others often explain them.
        self.found.sort_by_key(|problem| (problem.location.is_none(), problem.location));
        ConfigErrors { origin: origin.to_owned(), problems: self }
    }

    /// Two checks can read the same file and find the same mistake.
    pub(super) fn push(&mut self, problem: Problem) {
        if self.found.contains(&problem) {
            return;
        }
        if self.found.len() < MAX_PROBLEMS {
            self.found.push(problem);
        } else {
            self.beyond += 1;
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.beyond += other.beyond;
        for problem in other.found {
            self.push(problem);
        }
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { found: vec![problem], beyond: 0 }
    }
}

// === impl ConfigErrors ===

impl ConfigErrors {
    /// The file they were found in.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// The mistakes in the order of the file; those without a location are last. At most 100.
    pub fn problems(&self) -> &[Problem] {
        &self.problems.found
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.origin.display();
        for (n, problem) in self.problems.found.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            match problem.location {
                Some(location) => write!(f, "{origin}:{location}: {}", problem.message)?,
                None => write!(f, "{origin}: {}", problem.message)?,
            }
        }
        match self.problems.beyond {
            0 => Ok(()),
            beyond => write!(f, "\n{origin}: and {beyond} more"),
        }
    }
}

impl Error for ConfigErrors {}
