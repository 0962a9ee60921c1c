//! When a client is told how far its watch has come.
//!
//! An API server sends a bookmark about once a minute (`defaultBookmarkFrequency` in apiserver's cacher.go), which is
//! longer than some clients watch.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use kube_wire::query::ListOptions;
use memchr::memmem;
use rewrite::view::Beginning;
use tokio::time::{Instant, Sleep, sleep};

/// The longest time between two bookmarks.
const PERIOD: Duration = Duration::from_secs(15);

/// A bookmark in JSON, and in protobuf: `type` is field 1 of `WatchEvent` (apimachinery's meta/v1 generated.proto).
const BOOKMARKS: [&[u8]; 2] = [br#""type":"BOOKMARK""#, b"\x0a\x08BOOKMARK"];

/// The next bookmark of one watch.
pub(crate) struct Bookmarks {
    due: Pin<Box<Sleep>>,
}

// === impl Bookmarks ===

impl Bookmarks {
    pub(crate) fn new() -> Self {
        Self { due: Box::pin(sleep(PERIOD)) }
    }

    /// Takes note of what goes to the client: a bookmark of the host's own is as good as ours. Texts that merely look
    /// like one make the next one late, no more.
    pub(crate) fn note(&mut self, shown: &Bytes) {
        if BOOKMARKS.iter().any(|bookmark| memmem::find(shown, bookmark).is_some()) {
            self.due.as_mut().reset(Instant::now() + PERIOD);
        }
    }

    /// Ready when one is due; the next one is due a period later.
    pub(crate) fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.due.as_mut().poll(cx));
        self.due.as_mut().reset(Instant::now() + PERIOD);
        Poll::Ready(())
    }
}

/// How a watch begins that asks for bookmarks; `None` if it does not.
pub(crate) fn beginning(options: &ListOptions<'_>) -> Option<Beginning> {
    if !options.allow_watch_bookmarks {
        return None;
    }
    Some(match (options.send_initial_events, &*options.resource_version) {
        (Some(true), _) => Beginning::MarkedState,
        // Any state will do, or the latest one: it comes as events (`GetList` in apiserver's cacher.go).
        (_, "" | "0") => Beginning::State,
        _ => Beginning::Changes,
    })
}

#[cfg(test)]
mod tests {
    use kube_wire::query::Query;

    use super::*;

    #[test]
    fn a_watch_begins_with_changes_or_with_a_state() {
        for (query, expected) in [
            ("watch=1&resourceVersion=5", None),
            ("watch=1&resourceVersion=5&allowWatchBookmarks=true", Some(Beginning::Changes)),
            ("watch=1&resourceVersion=0&allowWatchBookmarks=true", Some(Beginning::State)),
            ("watch=1&allowWatchBookmarks=true", Some(Beginning::State)),
            (
                "watch=1&resourceVersion=5&allowWatchBookmarks=true&sendInitialEvents=true&\
                 resourceVersionMatch=NotOlderThan",
                Some(Beginning::MarkedState),
            ),
        ] {
            let query = Query::new(query);
            assert_eq!(beginning(&ListOptions::parse(&query).unwrap()), expected, "{}", query.as_str());
        }
    }
}
