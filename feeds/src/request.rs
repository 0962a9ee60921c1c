//! Which requests for the host a feed can answer, and how.
//!
//! The rules are those of kube-apiserver's cacher (`delegator.go` and `cacher.go` in `pkg/storage/cacher`) and of its
//! validation (`ValidateListOptions` in apimachinery's `pkg/apis/meta/internalversion/validation`). A request that a feed
//! cannot answer exactly as the host would goes to the host, also if it is invalid: the host words the error.

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, Method, Uri, header};
use hub::{ClusterId, ResourceVersion, Scope, Selection, Start};
use kube_wire::media::{Accept, Encoding, Form};
use kube_wire::query::{ListOptions, Query};
use kube_wire::request_info::Verb;
use kube_wire::selector::{FieldSelector, LabelSelector};
use kube_wire::{RequestInfo, ResourceRequest};

/// A watch that a feed can answer.
#[derive(Clone, Debug)]
pub struct WatchQuery {
    /// What it selects, in host names.
    pub selection: Selection,
    /// Where it begins.
    pub start: Start,
    /// It must begin with the newest state, whose version only the host knows. `start` does not contain this requirement.
    pub is_newest: bool,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// The time limit. `None` if the request has none.
    pub timeout: Option<Duration>,
}

/// A list that a feed can answer.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// What it selects, in host names.
    pub selection: Selection,
}

/// Why a request goes to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bypass {
    /// The configuration excludes the resource, or it is Events or Endpoints.
    Configured,
    /// The agent adds objects of the host to its response, or evaluates its label selector, or the host's versions may not be
    /// numbers.
    Class,
    /// It is not a list or a watch of a collection.
    Verb,
    /// A parameter that a feed does not know, or whose value is invalid.
    Options,
    /// The client prefers another form than JSON objects.
    Form,
    /// A selector that needs more than metadata, or a long one.
    Selector,
    /// It needs the version of the newest state, but no objects; or the host has not said which version is the newest.
    Newest,
    /// The caller may not watch.
    Right,
    /// No second virtual cluster watches the resource, and few watches of it are open at the host.
    Few,
    /// The hub remembers the maximum number of resources.
    Many,
    /// The feed has not reached the required version in time.
    Timeout,
    /// The window of the feed begins after the required version.
    BeforeWindow,
    /// The feed does not have the objects of the virtual cluster.
    Closed,
}

/// A list or a watch of a collection, as JSON objects.
struct CollectionRequest<'r>(RequestInfo<'r>);

/// The maximum number of different requirements of a label selector.
const MAX_REQUIREMENTS: usize = 64;

/// The maximum length of selectors that a feed evaluates for each event, in bytes.
const MAX_SELECTORS: usize = 4096;

/// The parameters of a list or a watch that a feed knows.
const KNOWN: [&str; 10] = [
    "allowWatchBookmarks",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeout",
    "timeoutSeconds",
    "watch",
];

// === impl Bypass ===

impl Bypass {
    /// The reason as one word, for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Class => "class",
            Self::Verb => "verb",
            Self::Options => "options",
            Self::Form => "form",
            Self::Selector => "selector",
            Self::Newest => "newest",
            Self::Right => "right",
            Self::Few => "few",
            Self::Many => "many",
            Self::Timeout => "timeout",
            Self::BeforeWindow => "window",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configured => "the hub does not watch this resource",
            Self::Class => "the agent adds to or selects from the host's response, or the API is aggregated",
            Self::Verb => "it is not a list or a watch of a collection",
            Self::Options => "the hub does not support one of the parameters, or its value is invalid",
            Self::Form => "the hub serves only objects in JSON",
            Self::Selector => "the hub does not support the selector",
            Self::Newest => "only the host knows the version of the newest state",
            Self::Right => "the caller may not watch this resource",
            Self::Few => "no other virtual cluster watches the resource, and few watches of it are open at the host",
            Self::Many => "the hub already serves the maximum number of resources",
            Self::Timeout => "the hub has not reached the version in time",
            Self::BeforeWindow => "the version is older than the events in memory",
            Self::Closed => "the hub does not have the objects of the virtual cluster",
        })
    }
}

// === impl WatchQuery ===

impl WatchQuery {
    /// Reads a request for the host, of this virtual cluster.
    pub fn read(method: &Method, uri: &Uri, headers: &HeaderMap, cluster: ClusterId) -> Result<Self, Bypass> {
        let read = CollectionRequest::new(method, uri, headers, Verb::Watch)?;
        let timeout = read.timeout()?;
        let options = read.options()?;
        // kube-apiserver ignores `limit` for a watch. Such watches are rare, so they go to the host.
        if read.query().contains("limit") {
            return Err(Bypass::Options);
        }
        let (start, is_newest) = start(&options)?;
        let selection = read.selection(&options, cluster)?;
        Ok(Self { selection, start, is_newest, bookmarks: options.allow_watch_bookmarks, timeout })
    }
}

// === impl ListQuery ===

impl ListQuery {
    /// Whether a request for the host is a list of any version, as far as its version tells. A feed answers no others, because
    /// its state can be older than that of the host.
    pub fn is_of_any_version(uri: &Uri) -> bool {
        let query = Query::new(uri.query().unwrap_or_default());
        query.first("resourceVersion").is_ok_and(|version| version.as_deref() == Some("0"))
    }

    /// Reads such a list, of this virtual cluster.
    pub fn read(method: &Method, uri: &Uri, headers: &HeaderMap, cluster: ClusterId) -> Result<Self, Bypass> {
        let read = CollectionRequest::new(method, uri, headers, Verb::List)?;
        read.timeout()?;
        let options = read.options()?;
        // For version 0, kube-apiserver's watch cache ignores the limit (`GetList` in `cacher.go`).
        let is_of_any_version =
            options.resource_version == "0" && matches!(&*options.resource_version_match, "" | "NotOlderThan");
        // The host refuses an invalid limit. `timeout` is a parameter of watches.
        let limit = read.query().first("limit").map_err(|_| Bypass::Options)?;
        let has_valid_limit =
            limit.is_none_or(|limit| limit.is_empty() || limit.parse::<i64>().is_ok_and(|limit| limit >= 0));
        let has_others = options.send_initial_events.is_some() || read.query().contains("timeout");
        if !is_of_any_version || !has_valid_limit || has_others {
            return Err(Bypass::Options);
        }
        Ok(Self { selection: read.selection(&options, cluster)? })
    }
}

// === impl CollectionRequest ===

impl<'r> CollectionRequest<'r> {
    fn new(method: &Method, uri: &'r Uri, headers: &HeaderMap, verb: Verb) -> Result<Self, Bypass> {
        let info = RequestInfo::parse(method, uri.path(), uri.query()).map_err(|_| Bypass::Options)?;
        let resource = info.resource().ok_or(Bypass::Verb)?;
        let is_plain =
            resource.subresource().is_none() && resource.path_name().is_none() && !resource.has_watch_prefix();
        if *method != Method::GET || resource.verb() != verb || !is_plain {
            return Err(Bypass::Verb);
        }
        if prefers_objects_in_json(headers) { Ok(Self(info)) } else { Err(Bypass::Form) }
    }

    fn query(&self) -> &Query<'r> {
        self.0.query()
    }

    /// Checks that a feed knows all parameters. Returns the time limit.
    fn timeout(&self) -> Result<Option<Duration>, Bypass> {
        known_options(self.query())
    }

    fn options(&self) -> Result<ListOptions<'_>, Bypass> {
        ListOptions::parse(self.query()).map_err(|_| Bypass::Options)
    }

    /// What it selects.
    fn selection(&self, options: &ListOptions<'_>, cluster: ClusterId) -> Result<Selection, Bypass> {
        if options.label_selector.len() + options.field_selector.len() > MAX_SELECTORS {
            return Err(Bypass::Selector);
        }
        let fields: FieldSelector = options.field_selector.parse().map_err(|_| Bypass::Options)?;
        // Kubernetes knows these two fields for every resource (`DefaultNamespaceScopedAttr` in `selection_predicate.go`).
        if fields.terms().iter().any(|term| !matches!(term.field(), "metadata.name" | "metadata.namespace")) {
            return Err(Bypass::Selector);
        }
        let scope = match self.0.resource().and_then(ResourceRequest::namespace) {
            Some(namespace) => Scope::Namespaces(vec![namespace.into()]),
            None => Scope::All,
        };
        let labels: LabelSelector = options.label_selector.parse().map_err(|_| Bypass::Options)?;
        let labels = labels.distinct();
        if labels.requirements().len() > MAX_REQUIREMENTS {
            return Err(Bypass::Selector);
        }
        Ok(Selection { cluster, scope, labels, fields })
    }
}

/// Checks that a feed knows all parameters. Returns the time limit.
fn known_options(query: &Query<'_>) -> Result<Option<Duration>, Bypass> {
    for pair in query.pairs() {
        let key = pair.decoded_key().map_err(|_| Bypass::Options)?;
        if !KNOWN.contains(&&*key) {
            return Err(Bypass::Options);
        }
    }
    let seconds = query.first("timeoutSeconds").map_err(|_| Bypass::Options)?.filter(|text| !text.is_empty());
    // Zero means no time limit, as in `ListResource` of apiserver's `pkg/endpoints/handlers/get.go`.
    let seconds = seconds.map(|text| text.parse::<u32>()).transpose().map_err(|_| Bypass::Options)?;
    Ok(seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into())))
}

/// Where a watch begins, and whether it requires the newest state.
fn start(options: &ListOptions<'_>) -> Result<(Start, bool), Bypass> {
    let version = match &*options.resource_version {
        "" => None,
        text => Some(text.parse::<ResourceVersion>().map_err(|_| Bypass::Options)?),
    };
    let zero = ResourceVersion::default();
    let state = |at_least, initial_events_end| Start::State { at_least, initial_events_end };
    let start = match (options.send_initial_events, version) {
        (Some(true), at_least) => state(at_least.unwrap_or_default(), true),
        (Some(false), None) => return Err(Bypass::Newest),
        (Some(false), Some(version)) if version == zero => Start::Now,
        (Some(false), Some(version)) => Start::After(version),
        (None, Some(version)) if version > zero => Start::After(version),
        // The client gets the objects first, but no mark at their end.
        (None, _) => state(zero, false),
    };
    // `sendInitialEvents` requires the match, and a watch without it forbids the match.
    let needed = if options.send_initial_events.is_some() { "NotOlderThan" } else { "" };
    if *options.resource_version_match != *needed {
        return Err(Bypass::Options);
    }
    Ok((start, version.is_none()))
}

/// Whether the best clause of `Accept` is an object in JSON.
fn prefers_objects_in_json(headers: &HeaderMap) -> bool {
    let accept = Accept::parse(headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()));
    let preferred = accept.by_preference();
    let Some(best) = preferred.first() else { return !headers.contains_key(header::ACCEPT) };
    best.form() == Some(Form::Object) && (best.encoding() == Some(Encoding::Json) || best.is_wildcard())
}
