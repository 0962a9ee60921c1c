//! The parameters of `ListOptions`, `CreateOptions`, `UpdateOptions`, `PatchOptions` and `DeleteOptions`
//! (apimachinery's `pkg/apis/meta/v1/types.go`), as typed views of a [`Query`].
//!
//! Keys that decide which objects a caller sees must not be repeated; of the others the first value counts, as in
//! `pkg/runtime/conversion.go`. Absent text and empty text are the same to Kubernetes and so they are here.

use std::borrow::Cow;

use super::known::{Known, Seen};
use super::{Query, QueryError, shown};

/// What a list, a watch or a deletecollection asks for, as far as it matters on the way. Numbers do not: whether they are
/// any the API server says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions<'q> {
    /// Whether events are asked for rather than a list.
    pub watch: bool,
    /// See [`crate::selector::LabelSelector`].
    pub label_selector: Cow<'q, str>,
    /// See [`crate::selector::FieldSelector`].
    pub field_selector: Cow<'q, str>,
    /// KEP-5866 (sharded list and watch): a range of hashes.
    pub shard_selector: Cow<'q, str>,
    /// Token of the page before.
    pub continue_token: Cow<'q, str>,
    /// Opaque; `""` and `"0"` have meanings of their own.
    pub resource_version: Cow<'q, str>,
    /// `Exact`, `NotOlderThan` or nothing.
    pub resource_version_match: Cow<'q, str>,
    /// Whether the watch may hold BOOKMARK events.
    pub allow_watch_bookmarks: bool,
    /// KEP-3157 (watch-list): whether a watch begins with the present state.
    pub send_initial_events: Option<bool>,
}

/// What a create, an update or a patch carries beside its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions<'q> {
    /// Whether nothing is to be stored. True when the key is there at all; the API server refuses values other than
    /// `All`.
    pub dry_run: bool,
    /// Who owns the written fields.
    pub field_manager: Cow<'q, str>,
    /// `Ignore`, `Warn`, `Strict` or nothing.
    pub field_validation: Cow<'q, str>,
    /// Whether an apply takes over fields of other managers.
    pub force: bool,
}

/// What a delete says in its query string. Its body, if it has one, says the same and then the query is ignored
/// (apiserver's `handlers/delete.go`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions<'q> {
    /// As in [`WriteOptions`].
    pub dry_run: bool,
    /// `Orphan`, `Background`, `Foreground` or nothing.
    pub propagation_policy: Cow<'q, str>,
    /// Seconds until the object is removed by force.
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
    /// Reads them all, in one pass: this runs for every list and watch. A key that does not decode is an error here.
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
