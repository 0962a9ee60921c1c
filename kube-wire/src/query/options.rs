//! The parameters of `ListOptions`, `CreateOptions`, `UpdateOptions`, `PatchOptions` and `DeleteOptions`
//! (apimachinery's `pkg/apis/meta/v1/types.go`), as typed views of a [`Query`].
//!
//! Keys that determine which objects a caller sees must not be repeated. Of other keys, the first value is used, as in
//! `pkg/runtime/conversion.go`. Absent and empty text are equal, as in Kubernetes.

use std::borrow::Cow;

use super::known::{Known, Seen};
use super::{Query, QueryError, shown};

/// The options of a list, a watch or a deletecollection that an intermediary needs. The API server validates numbers, which
/// are not here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions<'q> {
    /// Whether the request is a watch.
    pub watch: bool,
    /// See [`crate::selector::LabelSelector`].
    pub label_selector: Cow<'q, str>,
    /// See [`crate::selector::FieldSelector`].
    pub field_selector: Cow<'q, str>,
    /// KEP-5866 (sharded list and watch): a range of hashes.
    pub shard_selector: Cow<'q, str>,
    /// The token of the previous page.
    pub continue_token: Cow<'q, str>,
    /// Opaque. `""` and `"0"` have special meanings.
    pub resource_version: Cow<'q, str>,
    /// `Exact`, `NotOlderThan` or nothing.
    pub resource_version_match: Cow<'q, str>,
    /// Whether the watch may contain BOOKMARK events.
    pub allow_watch_bookmarks: bool,
    /// KEP-3157 (watch-list): whether a watch begins with the current state.
    pub send_initial_events: Option<bool>,
}

/// The options of a create, an update or a patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions<'q> {
    /// Whether it is a dry run. True if the key exists; the API server refuses values other than `All`.
    pub dry_run: bool,
    /// The owner of the written fields.
    pub field_manager: Cow<'q, str>,
    /// `Ignore`, `Warn`, `Strict` or nothing.
    pub field_validation: Cow<'q, str>,
    /// Whether an apply takes over the fields of other managers.
    pub force: bool,
}

/// The options of a delete in its query string. If the request has a body, the options in the body are used instead
/// (apiserver's `handlers/delete.go`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions<'q> {
    /// As in [`WriteOptions`].
    pub dry_run: bool,
    /// `Orphan`, `Background`, `Foreground` or nothing.
    pub propagation_policy: Cow<'q, str>,
    /// The grace period in seconds.
    pub grace_period_seconds: Option<i64>,
    /// The older form of `propagationPolicy=Orphan`.
    pub orphan_dependents: Option<bool>,
}

/// `Convert_Slice_string_To_bool`: only `0` and `false` in any case are false, the empty text is true.
pub fn parse_bool(text: &str) -> bool {
    text != "0" && !text.eq_ignore_ascii_case("false")
}

// === impl ListOptions ===

impl<'q> ListOptions<'q> {
    /// Reads all options in one pass, because this runs for every list and watch. A key that cannot be decoded is an error.
    pub fn parse(query: &'q Query<'_>) -> Result<Self, QueryError> {
        let mut options = Self::default();
        let mut seen = Seen::default();
        for pair in query.pairs() {
            let key = pair.decoded_key()?;
            let Some(known) = Known::parse(&key) else {
                continue;
            };
            if !seen.first(known)? {
                continue;
            }
            let value = pair.decoded_value()?;
            match known {
                Known::Watch => options.watch = parse_bool(&value),
                Known::LabelSelector => options.label_selector = value,
                Known::FieldSelector => options.field_selector = value,
                Known::ShardSelector => options.shard_selector = value,
                Known::Continue => options.continue_token = value,
                Known::ResourceVersion => options.resource_version = value,
                Known::ResourceVersionMatch => options.resource_version_match = value,
                Known::AllowWatchBookmarks => options.allow_watch_bookmarks = parse_bool(&value),
                Known::SendInitialEvents => options.send_initial_events = Some(parse_bool(&value)),
            }
        }
        Ok(options)
    }
}

// === impl WriteOptions ===

impl<'q> WriteOptions<'q> {
    /// Reads them all.
    pub fn parse(query: &'q Query<'_>) -> Result<Self, QueryError> {
        Ok(Self {
            dry_run: query.contains("dryRun"),
            field_manager: text(query, "fieldManager")?,
            field_validation: text(query, "fieldValidation")?,
            force: boolean(query, "force")?.unwrap_or(false),
        })
    }
}

// === impl DeleteOptions ===

impl<'q> DeleteOptions<'q> {
    /// Reads them all.
    pub fn parse(query: &'q Query<'_>) -> Result<Self, QueryError> {
        Ok(Self {
            dry_run: query.contains("dryRun"),
            propagation_policy: text(query, "propagationPolicy")?,
            grace_period_seconds: integer(query, "gracePeriodSeconds")?,
            orphan_dependents: boolean(query, "orphanDependents")?,
        })
    }
}

fn text<'q>(query: &'q Query<'_>, key: &'static str) -> Result<Cow<'q, str>, QueryError> {
    query.first(key).map(Option::unwrap_or_default)
}

fn boolean(query: &Query<'_>, key: &'static str) -> Result<Option<bool>, QueryError> {
    Ok(query.first(key)?.map(|text| parse_bool(&text)))
}

fn integer(query: &Query<'_>, key: &'static str) -> Result<Option<i64>, QueryError> {
    query.first(key)?.map(|text| parse_integer(key, &text)).transpose()
}

fn parse_integer(key: &'static str, text: &str) -> Result<i64, QueryError> {
    text.parse().map_err(|_| QueryError::NotAnInteger { key, value: shown(text) })
}
