//! Watches: initial events if the client requests them, then changes and bookmarks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use kube_wire::Status;
use kube_wire::query::ListOptions;
use kube_wire::watch::{EventType, error_event};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::list::{forbid, parse_version, too_old};
use super::request::ApiRequest;
use super::selection::Selection;
use super::shape::Shape;
use crate::api::Api;
use crate::kinds::Kind;
use crate::response::{self, Body};
use crate::store::{Change, State};

/// The interval of bookmarks. In kube-apiserver it is about a minute.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(15);
/// The last bookmark of a watch comes this long before its end (`nextBookmarkTime` in apiserver's
/// `pkg/storage/cacher/cache_watcher.go`).
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// The timeout of a watch without `timeoutSeconds` (`--min-request-timeout`).
const MIN_REQUEST_TIMEOUT: Duration = Duration::from_secs(1800);
/// The number of events that wait for a slow client.
const BUFFERED_EVENTS: usize = 64;

/// One watch.
struct Watch {
    kind: &'static Kind,
    namespace: Option<String>,
    selection: Selection,
    shape: Shape,
    bookmarks: bool,
    /// All changes up to this version have been sent.
    sent_version: u64,
    /// Whether the column definitions of a Table have been sent.
    columns_sent: AtomicBool,
}

pub(super) fn watch(request: &ApiRequest<'_>) -> Result<Response<Body>, Status> {
    let kind = request.kind;
    let options = request.list_options()?;
    check(&options)?;
    let mut selection = Selection::parse(kind, &options)?;
    if let Some(name) = request.resource.path_name() {
        let options = ListOptions { field_selector: format!("metadata.name={name}").into(), ..ListOptions::default() };
        selection = Selection::parse(kind, &options)?;
    }
    let version = parse_version(&options.resource_version)?;
    let initial = options.send_initial_events.unwrap_or(version == 0);
    let mut watch = Watch {
        kind,
        namespace: request.namespace().map(str::to_owned),
        selection,
        shape: Shape::requested(request)?,
        bookmarks: options.allow_watch_bookmarks,
        sent_version: version,
        columns_sent: AtomicBool::new(false),
    };
    let mut first = Vec::new();
    request.api.store.read(|state| {
        if initial {
            first = watch.initial_events(state);
            watch.sent_version = state.revision();
        } else if version == 0 {
            watch.sent_version = state.revision();
        }
    });
    if options.send_initial_events == Some(true) && watch.bookmarks {
        first.push(watch.bookmark(true));
    }
    let timeout_seconds: Option<u64> = request.number("timeoutSeconds")?;
    let until = Instant::now() + timeout_seconds.map_or(MIN_REQUEST_TIMEOUT, Duration::from_secs);
    let (sender, frames) = mpsc::channel(BUFFERED_EVENTS);
    let api = Arc::clone(request.api);
    request.api.tasks.spawn("watch", async move {
        let ending = api.tasks.cancelled();
        tokio::select! {
            () = ending => {}
            () = sleep_until(until) => {}
            () = watch.run(&api, first, until, &sender) => {}
        }
    });
    Ok(response::stream(kube_wire::media::JSON, frames))
}

/// The rules for options of watches (`ValidateListOptions` in apimachinery, KEP-3157).
fn check(options: &ListOptions<'_>) -> Result<(), Status> {
    let is_not_older = options.resource_version_match == "NotOlderThan";
    match options.send_initial_events {
        Some(_) if !is_not_older => {
            forbid("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        }
        None if !options.resource_version_match.is_empty() => {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            forbid("resourceVersionMatch", why)
        }
        _ => Ok(()),
    }
}

// === impl Watch ===

impl Watch {
    /// Sends events until the client disconnects.
    async fn run(mut self, api: &Api, first: Vec<Bytes>, until: Instant, sender: &mpsc::Sender<Bytes>) {
        let mut revision = api.store.subscribe();
        let mut bookmarks = interval_at(Instant::now() + BOOKMARK_INTERVAL, BOOKMARK_INTERVAL);
        bookmarks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let last = sleep_until(until - LAST_BOOKMARK);
        tokio::pin!(last);
        // A watch that is shorter gets none.
        let mut has_last = !self.bookmarks || last.is_elapsed();
        let mut frames = first;
        loop {
            for frame in frames.drain(..) {
                if sender.send(frame).await.is_err() {
                    return;
                }
            }
            match api.store.read(|state| self.changes(state)) {
                Ok(changes) => frames = changes,
                Err(status) => {
                    // This is the last event. The client may have disconnected.
                    let _ = sender.send(error_event(&status).into()).await;
                    return;
                }
            }
            if !frames.is_empty() {
                continue;
            }
            tokio::select! {
                () = sender.closed() => return,
                changed = revision.changed() => if changed.is_err() { return },
                _ = bookmarks.tick(), if self.bookmarks => frames.push(self.bookmark(false)),
                () = &mut last, if !has_last => {
                    has_last = true;
                    frames.push(self.bookmark(false));
                }
            }
        }
    }

    /// An event `ADDED` for each selected object.
    fn initial_events(&self, state: &State) -> Vec<Bytes> {
        let objects = state.list(self.kind, self.namespace.as_deref());
        objects
            .filter(|object| self.selection.selects(object))
            .map(|object| self.frame(EventType::Added, object))
            .collect()
    }

    /// The events since the last one that was sent.
    fn changes(&mut self, state: &State) -> Result<Vec<Bytes>, Status> {
        let changes = state.changes_after(self.sent_version).map_err(|oldest| too_old(self.sent_version, oldest))?;
        let frames = changes.filter_map(|change| self.event(change)).collect();
        self.sent_version = self.sent_version.max(state.revision());
        Ok(frames)
    }

    /// The event of a change. An object that begins to match a selector is `ADDED`, and one that ceases to is `DELETED`.
    fn event(&self, change: &Change) -> Option<Bytes> {
        let is_watched = change.kind == self.kind
            && self.namespace.as_deref().is_none_or(|namespace| change.object["metadata"]["namespace"] == *namespace);
        if !is_watched {
            return None;
        }
        let before = change.before.as_ref().is_some_and(|before| self.selection.selects(before));
        let after = !change.removed && self.selection.selects(&change.object);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(self.frame(EventType::Added, &change.object)),
            (true, true) => Some(self.frame(EventType::Modified, &change.object)),
            (true, false) => Some(self.frame(EventType::Deleted, &last_selected(change))),
        }
    }

    fn frame(&self, event: EventType, object: &Value) -> Bytes {
        let mut shown = self.shape.of(self.kind, object);
        // Only the first Table has column definitions, as in kube-apiserver.
        if matches!(self.shape, Shape::Table(_)) && self.columns_sent.swap(true, Ordering::Relaxed) {
            shown["columnDefinitions"] = Value::Null;
        }
        frame(event, &shown)
    }

    fn bookmark(&self, is_initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.sent_version.to_string()});
        if is_initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.shape {
            Shape::Table(_) => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": self.sent_version.to_string()},
                "columnDefinitions": null, "rows": [{"cells": [], "object": {
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                }}],
            }),
            Shape::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Shape::Object => {
                json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata})
            }
        };
        frame(EventType::Bookmark, &object)
    }
}

fn frame(event: EventType, object: &Value) -> Bytes {
    let mut bytes = format!(r#"{{"type":"{}","object":{object}}}"#, event.as_str()).into_bytes();
    bytes.push(b'\n');
    bytes.into()
}

/// The object of an event `DELETED`: the last selected state, with the resource version of the change.
fn last_selected(change: &Change) -> Value {
    match &change.before {
        Some(before) if !change.removed => {
            let mut last = Value::clone(before);
            last["metadata"]["resourceVersion"] = change.revision.to_string().into();
            last
        }
        _ => Value::clone(&change.object),
    }
}
