//! Field selectors, as `k8s.io/apimachinery/pkg/fields` reads and prints them.
//!
//! In a value, a backslash escapes `\`, `,` and `=`. The name of a field has no escapes.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

/// Terms that must all match. Without terms, it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// `field=value` or `field!=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    field: String,
    value: String,
    negated: bool,
}

/// The text is not a field selector. The messages are those of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldSelectorError {
    /// No operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NoOperator {
        /// The whole text.
        selector: String,
        /// The invalid part.
        term: String,
    },
    /// A backslash before a character that needs none.
    #[error("invalid field selector: invalid escape sequence: {sequence}")]
    Escape {
        /// The backslash and the character after it.
        sequence: String,
    },
    /// A `,` or `=` that needs a backslash.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*character))]
    Unescaped {
        /// The character; Kubernetes prints its number.
        character: char,
    },
}

// === impl FieldSelector ===

impl FieldSelector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms, sorted as in Kubernetes: by their text.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The value that `field` must have according to the first such term, if any (`RequiresExactMatch`).
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| !term.negated && term.field == field).map(|term| term.value.as_str())
    }

    /// Selects the objects that both select.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.terms.extend(other.terms);
        self
    }

    /// Replaces every value to which `field` is compared by the result of `map`.
    pub fn map_values<E>(mut self, field: &str, mut map: impl FnMut(&str) -> Result<String, E>) -> Result<Self, E> {
        for term in self.terms.iter_mut().filter(|term| term.field == field) {
            term.value = map(&term.value)?;
        }
        Ok(self)
    }

    /// Removes all terms about `field`.
    #[must_use]
    pub fn without(mut self, field: &str) -> Self {
        self.terms.retain(|term| term.field != field);
        self
    }
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;
    fn from_str(text: &str) -> Result<Self, FieldSelectorError> {
        let mut parts = split_terms(text);
        // Kubernetes sorts the raw terms, and the order determines which of two names `exact` returns.
        parts.sort_unstable();
        let mut terms = Vec::with_capacity(parts.len());
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, negated, value)) = split_term(part) else {
                return Err(FieldSelectorError::NoOperator { selector: text.to_owned(), term: part.to_owned() });
            };
            let value = unescape(value)?;
            // `=` alone selects everything: apimachinery drops a term with neither field nor value.
            if !field.is_empty() || !value.is_empty() {
                terms.push(FieldTerm { field: field.to_owned(), value, negated });
            }
        }
        Ok(Self { terms })
    }
}

/// The canonical form.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, term) in self.terms.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            term.fmt(f)?;
        }
        Ok(())
    }
}

// === impl FieldTerm ===

impl FieldTerm {
    /// The field's path, such as `metadata.name`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The value to which the field is compared, without escapes.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether the field must *not* have that value.
    pub fn is_negated(&self) -> bool {
        self.negated
    }
}

impl fmt::Display for FieldTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field)?;
        f.write_str(if self.negated { "!=" } else { "=" })?;
        for character in self.value.chars() {
            if matches!(character, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            write!(f, "{character}")?;
        }
        Ok(())
    }
}

/// Splits at every comma without a backslash before it.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits at the first operator. `==` means `=`.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let equals = term.find('=')?;
    if let Some(field) = term[..equals].strip_suffix('!') {
        return Some((field, true, &term[equals + 1..]));
    }
    let value = &term[equals + 1..];
    Some((&term[..equals], false, value.strip_prefix('=').unwrap_or(value)))
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    return Err(FieldSelectorError::Escape { sequence: ['\\'].into_iter().chain(other).collect() });
                }
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped { character }),
            _ => plain.push(character),
        }
    }
    Ok(plain)
}
