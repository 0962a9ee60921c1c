//! Licence expressions (SPDX Specification 2.3, annex D), as far as crates write them.
//!
//! What is *not* here: the list of licences. A name that is not allowed need not be known.

use std::fmt;

/// Parentheses deeper than this are not read: expressions come from strangers, and the parser recurses.
const DEEPEST: usize = 32;

/// Under which licences something may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// A licence, with its exception if it has one: `Apache-2.0 WITH LLVM-exception`.
    License(String),
    /// Each of them binds.
    And(Vec<Self>),
    /// One may be chosen.
    Or(Vec<Self>),
}

/// The text is no licence expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    text: String,
}

/// What is left of the text, word by word.
struct Words<'a> {
    rest: std::iter::Peekable<std::vec::IntoIter<&'a str>>,
}

// === impl Expression ===

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self, Malformed> {
        // `MIT/Apache-2.0` is how Cargo wrote OR before SPDX.
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut words = Words { rest: words.into_iter().peekable() };
        let expression = words.alternatives(0);
        match (expression, words.rest.next()) {
            (Some(expression), None) => Ok(expression),
            _ => Err(Malformed { text: text.to_owned() }),
        }
    }

    /// Whether licences that `allowed` accepts are enough.
    pub(super) fn is_met(&self, allowed: &impl Fn(&str) -> bool) -> bool {
        match self {
            Self::License(name) => allowed(name),
            Self::And(parts) => parts.iter().all(|part| part.is_met(allowed)),
            Self::Or(parts) => parts.iter().any(|part| part.is_met(allowed)),
        }
    }

    /// Every licence that it names.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::License(name) => vec![name],
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::names).collect(),
        }
    }

    fn of(mut parts: Vec<Self>, join: fn(Vec<Self>) -> Self) -> Option<Self> {
        if parts.len() == 1 { parts.pop() } else { Some(join(parts)) }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, join) = match self {
            Self::License(name) => return f.write_str(name),
            Self::And(parts) => (parts, " AND "),
            Self::Or(parts) => (parts, " OR "),
        };
        for (index, part) in parts.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { join })?;
            match part {
                Self::License(name) => f.write_str(name)?,
                _ => write!(f, "({part})")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no SPDX expression", self.text)
    }
}

// === impl Words ===

impl<'a> Words<'a> {
    /// OR binds less than AND, and AND less than WITH.
    fn alternatives(&mut self, depth: usize) -> Option<Expression> {
        let mut parts = vec![self.conjunction(depth)?];
        while self.rest.next_if_eq(&"OR").is_some() {
            parts.push(self.conjunction(depth)?);
        }
        Expression::of(parts, Expression::Or)
    }

    fn conjunction(&mut self, depth: usize) -> Option<Expression> {
        let mut parts = vec![self.term(depth)?];
        while self.rest.next_if_eq(&"AND").is_some() {
            parts.push(self.term(depth)?);
        }
        Expression::of(parts, Expression::And)
    }

    fn term(&mut self, depth: usize) -> Option<Expression> {
        if self.rest.next_if_eq(&"(").is_some() {
            let inner = if depth < DEEPEST {
                self.alternatives(depth + 1)?
            } else {
                return None;
            };
            return (self.rest.next()? == ")").then_some(inner);
        }
        let license = self.name()?;
        if self.rest.next_if_eq(&"WITH").is_none() {
            return Some(Expression::License(license.to_owned()));
        }
        Some(Expression::License(format!("{license} WITH {}", self.name()?)))
    }

    fn name(&mut self) -> Option<&'a str> {
        self.rest.next().filter(|word| !["AND", "OR", "WITH", "(", ")"].contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, allowed: &[&str], expected: bool) {
        let license = Expression::parse(text).unwrap_or_else(|err| panic!("{err}"));
        assert_eq!(license.is_met(&|name| allowed.contains(&name)), expected, "{text} with {allowed:?}");
    }

    #[test]
    fn a_choice_is_met_by_one_and_a_sum_by_all() {
        check("MIT OR Apache-2.0", &["MIT"], true);
        check("MIT/Apache-2.0", &["Apache-2.0"], true);
        check("MIT AND ISC", &["MIT"], false);
        check("MIT OR ISC AND Zlib", &["MIT"], true);
        check("(MIT OR ISC) AND Zlib", &["MIT"], false);
        check("MIT OR Apache-2.0 OR LGPL-2.1-or-later", &["MIT"], true);
    }

    #[test]
    fn an_exception_is_a_part_of_the_licence() {
        check("Apache-2.0 WITH LLVM-exception", &["Apache-2.0"], false);
        check("Apache-2.0 WITH LLVM-exception", &["Apache-2.0 WITH LLVM-exception"], true);
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        let deep = format!("{}MIT{}", "(".repeat(100_000), ")".repeat(100_000));
        for bad in ["", "MIT OR", "AND", "(MIT", "MIT)", "MIT ISC", "MIT WITH", "()", &deep] {
            assert!(Expression::parse(bad).is_err(), "{}", &bad[..bad.len().min(20)]);
        }
    }

    fn expression() -> impl Strategy<Value = Expression> {
        let license = prop_oneof![
            "[A-Z][a-z]{1,3}-[0-9]".prop_map(Expression::License),
            "[A-Z][a-z]{1,3}-[0-9] WITH x-[a-z]{1,3}".prop_map(Expression::License),
        ];
        license.prop_recursive(4, 16, 3, |inner| {
            let parts = proptest::collection::vec(inner, 2..4);
            prop_oneof![parts.clone().prop_map(Expression::And), parts.prop_map(Expression::Or)]
        })
    }

    proptest! {
        #[test]
        fn the_text_form_is_its_own_inverse(expression in expression()) {
            prop_assert_eq!(Expression::parse(&expression.to_string()), Ok(expression));
        }

        #[test]
        fn any_text_is_an_expression_or_not(text in "[A()/ ORNDWITH]{0,40}") {
            let _ = Expression::parse(&text);
        }
    }
}
