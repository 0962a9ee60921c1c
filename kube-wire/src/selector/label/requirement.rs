//! One requirement of a label selector.

use std::fmt;

use super::error::LabelSelectorError;
use crate::go_quote::GoQuoted;
use crate::name::{label_key, label_value};

/// One requirement for one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    pub(super) key: String,
    pub(super) test: Test,
}

/// The test of a label. The values of a set are sorted, without duplicates, and never empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key=value` or `key==value`
    Equals(String),
    /// `key!=value`; also true of an object without the label.
    NotEquals(String),
    /// `key in (a,b)`
    In(Vec<String>),
    /// `key notin (a,b)`; also true of an object without the label.
    NotIn(Vec<String>),
    /// `key>5`, as integers.
    GreaterThan(i64),
    /// `key<5`, as integers.
    LessThan(i64),
}

// === impl Requirement ===

impl Requirement {
    /// Validates the key and the values, and sorts the values of a set. An empty set becomes a set with the empty
    /// value, as the grammar reads `in ()`.
    pub fn new(key: &str, test: Test) -> Result<Self, LabelSelectorError> {
        let (test, problems) = match test {
            Test::In(values) => {
                let (values, problems) = set(key, values);
                (Test::In(values), problems)
            }
            Test::NotIn(values) => {
                let (values, problems) = set(key, values);
                (Test::NotIn(values), problems)
            }
            Test::Equals(value) => {
                let problems = bad_value(key, 0, &value).into_iter().collect();
                (Test::Equals(value), problems)
            }
            Test::NotEquals(value) => {
                let problems = bad_value(key, 0, &value).into_iter().collect();
                (Test::NotEquals(value), problems)
            }
            // A negative number is not a valid value of a label, so it could not be parsed again.
            Test::GreaterThan(bound) | Test::LessThan(bound) if bound < 0 => {
                let problems = bad_value(key, 0, &bound.to_string()).into_iter().collect();
                (test, problems)
            }
            bare => (bare, Vec::new()),
        };
        if let Err(violations) = label_key(key) {
            return Err(LabelSelectorError::about_key(key, &violations.to_string()));
        }
        match problems.as_slice() {
            [] => Ok(Self { key: key.to_owned(), test }),
            [problem] => Err(LabelSelectorError::in_requirement(problem)),
            many => Err(LabelSelectorError::in_requirement(&format!("[{}]", many.join(", ")))),
        }
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The test of its value.
    pub fn test(&self) -> &Test {
        &self.test
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::Exists => f.write_str(key),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::Equals(value) => write!(f, "{key}={value}"),
            Test::NotEquals(value) => write!(f, "{key}!={value}"),
            Test::In(values) => write!(f, "{key} in ({})", values.join(",")),
            Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
            Test::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Test::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

// === impl Test ===

impl Test {
    /// Whether the value of a label passes. `None` stands for an object without the label.
    pub fn holds(&self, value: Option<&str>) -> bool {
        let integer = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Equals(wanted) => value == Some(wanted),
            Self::NotEquals(unwanted) => value != Some(unwanted),
            Self::In(wanted) => value.is_some_and(|value| has(wanted, value)),
            Self::NotIn(unwanted) => value.is_none_or(|value| !has(unwanted, value)),
            Self::GreaterThan(bound) => integer().is_some_and(|value| value > *bound),
            Self::LessThan(bound) => integer().is_some_and(|value| value < *bound),
        }
    }
}

/// Whether a set, which is sorted, has the value. Clients choose the number of values.
fn has(set: &[String], value: &str) -> bool {
    set.binary_search_by(|one| one.as_str().cmp(value)).is_ok()
}

fn set(key: &str, mut values: Vec<String>) -> (Vec<String>, Vec<String>) {
    if values.is_empty() {
        values.push(String::new());
    }
    values.sort_unstable();
    values.dedup();
    let problems = values.iter().enumerate().filter_map(|(index, value)| bad_value(key, index, value)).collect();
    (values, problems)
}

fn bad_value(key: &str, index: usize, value: &str) -> Option<String> {
    let violations = label_value(value).err()?;
    Some(format!("values[{index}][{key}]: Invalid value: {}: {violations}", GoQuoted(value)))
}
