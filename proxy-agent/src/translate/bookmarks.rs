//! The times of bookmarks, which contain the current version of a watch.
//!
//! An API server sends a bookmark about once a minute (`defaultBookmarkFrequency` in apiserver's cacher.go), which is
//! longer than some clients watch.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kube_wire::query::ListOptions;
use rewrite::view::Beginning;
use tokio::time::{Instant, Sleep, sleep};

/// The maximum time between two bookmarks.
const PERIOD: Duration = Duration::from_secs(15);

/// The time of the next bookmark of one watch.
pub(crate) struct Bookmarks {
    due: Pin<Box<Sleep>>,
}

// === impl Bookmarks ===

impl Bookmarks {
    pub(crate) fn new() -> Self {
        Self { due: Box::pin(sleep(PERIOD)) }
    }

    /// Delays the next bookmark, because the client gets one from the host now.
    pub(crate) fn delay(&mut self) {
        self.due.as_mut().reset(Instant::now() + PERIOD);
    }

    /// Ready when a bookmark is due. The next one is due a period later.
    pub(crate) fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.due.as_mut().poll(cx));
        self.delay();
        Poll::Ready(())
    }
}

/// How a watch with bookmarks begins; `None` if the client does not request bookmarks.
pub(crate) fn beginning(options: &ListOptions<'_>) -> Option<Beginning> {
    if !options.allow_watch_bookmarks {
        return None;
    }
    Some(match (options.send_initial_events, &*options.resource_version) {
        (Some(true), _) => Beginning::MarkedState,
        // The client accepts any state, or the latest one, which is sent as events (`GetList` in apiserver's
        // cacher.go).
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
