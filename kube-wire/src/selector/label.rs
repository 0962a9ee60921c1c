//! Label selectors, as `k8s.io/apimachinery/pkg/labels` reads and prints them.

mod error;
mod lexer;
mod parser;
mod requirement;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

pub use error::LabelSelectorError;
pub use requirement::{Requirement, Test};

/// Requirements that must all match. Without requirements, it selects everything. They are sorted by key, as in
/// Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
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

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The positions of the requirements for this label.
    pub fn positions_of(&self, key: &str) -> Range<usize> {
        let start = self.requirements.partition_point(|requirement| *requirement.key < *key);
        let on_key = self.requirements[start..].iter().take_while(|requirement| requirement.key == key);
        start..start + on_key.count()
    }

    /// Selects the objects that both select. Duplicate requirements are kept.
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

    /// Whether an object with these labels is selected. `value_of` looks up a label.
    pub fn matches<'l>(&self, value_of: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.test.holds(value_of(&requirement.key)))
    }

    /// The value that `key` must have, if the first requirement for it determines that.
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

    /// Replaces every value to which `key` is compared for equality by the result of `map`, which is validated as the
    /// value of a label. After an error, the selector is unusable, so it is consumed.
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

    /// The same requirements for other labels.
    pub fn map_keys(self, map: impl Fn(&str) -> String) -> Result<Self, LabelSelectorError> {
        let mapped = self.requirements.into_iter().map(|Requirement { key, test }| Requirement::new(&map(&key), test));
        mapped.collect::<Result<_, _>>().map(Self::of)
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Self { requirements }
    }
}

impl From<Requirement> for LabelSelector {
    fn from(requirement: Requirement) -> Self {
        Self { requirements: vec![requirement] }
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
