//! Calls the YAML library and translates its errors.

use serde_saphyr::{Error, MessageFormatter, Options, UserMessageFormatter};

use super::location::Location;
use super::problem::Problem;

/// Limits for a file of at most [`MAX_BYTES`](super::MAX_BYTES). Anchors and aliases are allowed in small numbers.
/// Their expansion counts, so that a short file cannot become a large one.
pub(super) fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 300_000,
            max_nodes: 150_000,
            max_depth: 32,
            max_aliases: 1_000,
            max_anchors: 1_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
        },
        // Errors name lines only: a copy of a part of the file could put a secret into a log.
        with_snippet: false,
        // YAML 1.1 reads `no` as false, which surprises users.
        strict_booleans: true,
        // A tag (`!include`, `!env`) requests something that is not supported.
        reject_unsupported_tags: true,
    }
}

/// The library's error, with its location removed from the text.
pub(super) fn problem(error: &Error) -> Problem {
    let error = error.without_snippet();
    let location = error.location().and_then(Location::of);
    let message = match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("duplicate key `{key}`"),
        Error::DuplicateMappingKey { .. } => "duplicate key".to_owned(),
        Error::SerdeMissingField { field, .. } => format!("key `{field}` is missing"),
        Error::InvalidBooleanStrict { .. } => "expected `true` or `false`".to_owned(),
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            format!("`{variant}` is not one of {}", expected.join(", "))
        }
        Error::InvalidScalar { ty, .. } if ty.starts_with(['u', 'i']) => {
            format!("expected a whole number that fits {ty}")
        }
        Error::Unexpected { expected, .. } => {
            let wanted = match *expected {
                "sequence start" => "a list",
                "mapping start" => "a mapping of keys to values",
                "string scalar" => "a string",
                other => other,
            };
            format!("expected {wanted}")
        }
        Error::UnknownAnchor { .. } => "no anchor of this name precedes the alias".to_owned(),
        Error::AliasError { error, .. } => return problem(error),
        error => UserMessageFormatter.format_message(error).into_owned(),
    };
    Problem::new(location, message)
}
