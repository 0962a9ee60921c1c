//! Label selectors, as `k8s.io/apimachinery/pkg/labels` reads and prints them.

mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::go_quote::GoQuoted;
use crate::name::{label_key, label_value};

/// Requirements that must all hold; none at all selects everything. Sorted by key, as Kubernetes sorts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    key: String,
    test: Test,
}

/// What is asked of a label. Values of a set are sorted, without duplicates, never none.
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

/// Why text is no label selector. The text is Kubernetes' own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LabelSelectorError {
    message: String,
}

// === impl LabelSelector ===

impl LabelSelector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Requires exactly these labels.
    pub fn from_labels<'l>(labels: impl IntoIterator<Item = (&'l str, &'l str)>) -> Result<Self, LabelSelectorError> {
        let requirements = labels.into_iter().map(|(key, value)| Requirement::new(key, Test::Equals(value.to_owned())));
        Ok(Self::of(requirements.collect::<Result<_, _>>()?))
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// What is required, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The positions of the requirements for this label.
    pub fn positions_of(&self, key: &str) -> Range<usize> {
        let start = self.requirements.partition_point(|requirement| *requirement.key < *key);
        let on_key = self.requirements[start..].iter().take_while(|requirement| requirement.key == key);
        start..start + on_key.count()
    }

    /// The objects that both select. Nothing is simplified: a duplicate requirement of a client stays a duplicate.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.requirements.extend(other.requirements);
        Self::of(self.requirements)
    }

    /// Selects the same objects, without duplicate requirements.
    #[must_use]
    pub fn distinct(mut self) -> Self {
        self.requirements.sort_unstable();
        self.requirements.dedup();
        self
    }

    /// Whether an object with these labels is selected; `value_of` looks a label up.
    pub fn matches<'l>(&self, value_of: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.test.holds(value_of(&requirement.key)))
    }

    /// The one value that `key` must have, if the first requirement on it says so.
    pub fn exact(&self, key: &str) -> Option<&str> {
        match &self.requirements.iter().find(|requirement| requirement.key == key)?.test {
            Test::Equals(value) => Some(value),
            Test::In(values) => match values.as_slice() {
                [value] => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// Replaces every value that `key` is compared with for equality by what `map` says. What it returns is validated
    /// as a label's value; an error of either kind leaves the selector unusable, so it is consumed.
    pub fn map_values<E>(self, key: &str, mut map: impl FnMut(&str) -> Result<String, E>) -> Result<Self, E>
    where
        E: From<LabelSelectorError>,
    {
        let mut requirements = self.requirements;
        for requirement in requirements.iter_mut().filter(|requirement| requirement.key == key) {
            let test = match &requirement.test {
                Test::Equals(value) => Test::Equals(map(value)?),
                Test::NotEquals(value) => Test::NotEquals(map(value)?),
                Test::In(values) => Test::In(values.iter().map(|value| map(value)).collect::<Result<_, _>>()?),
                Test::NotIn(values) => Test::NotIn(values.iter().map(|value| map(value)).collect::<Result<_, _>>()?),
                Test::Exists | Test::DoesNotExist | Test::GreaterThan(_) | Test::LessThan(_) => {
                    continue;
                }
            };
            *requirement = Requirement::new(key, test)?;
        }
        Ok(Self { requirements })
    }

    /// The same requirements of other labels.
    pub fn map_keys(self, map: impl Fn(&str) -> String) -> Result<Self, LabelSelectorError> {
        let mapped = self.requirements.into_iter().map(|Requirement { key, test }| Requirement::new(&map(&key), test));
        mapped.collect::<Result<_, _>>().map(Self::of)
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Self { requirements }
    }
}

impl FromStr for LabelSelector {
    type Err = LabelSelectorError;
    fn from_str(text: &str) -> Result<Self, LabelSelectorError> {
        parser::parse(text).map(Self::of)
    }
}

/// The canonical form. `==` is printed as `=`.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.requirements.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

// === impl Requirement ===

impl Requirement {
    /// Validates the key and the values, sorts the values of a set; an empty set becomes one of the empty value, which
    /// is how the grammar reads `in ()`.
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
            // A negative number would not be a label's value, hence could not be parsed back.
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

    /// What is asked of it.
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
    /// Whether it holds for a label's value, `None` being an object without the label.
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

// === impl LabelSelectorError ===

impl LabelSelectorError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    fn in_requirement(problem: &str) -> Self {
        Self::new(format!("unable to parse requirement: {problem}"))
    }

    /// Kubernetes prints the missing field path as `<nil>`; the text is kept because it is what clients know.
    fn about_key(key: &str, violations: &str) -> Self {
        Self::in_requirement(&format!("<nil>: Invalid value: {}: {violations}", GoQuoted(key)))
    }
}
