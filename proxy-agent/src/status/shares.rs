//! What a virtual cluster uses of what all virtual clusters share.

use ops::used::Used;
use serde::{Deserialize, Serialize};

/// What a virtual cluster uses, and the limits. Some limits depend on what the others use at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SharesStatus {
    /// Requests without a complete response, apart from those below.
    pub requests: Used,
    /// Open watches and logs.
    pub watches: Used,
    /// Open sessions: exec, attach, port-forward, proxied requests, WebSocket.
    pub sessions: Used,
    /// Seats at the host's API server, which lists and new watches occupy.
    pub seats: Used,
    /// Bytes of request bodies, and of objects in responses.
    pub body_bytes: Used,
    /// Bytes of lists in protobuf.
    pub list_bytes: Used,
    /// Bytes of events.
    pub event_bytes: Used,
    /// Bytes of long request heads.
    pub head_bytes: Used,
    /// Bytes that wait for a tunnel to send them.
    pub queued_bytes: Used,
    /// Its namespaces.
    pub namespaces: Used,
    /// Bytes of its stored objects, as JSON.
    pub stored_bytes: Used,
    /// Bytes of all versions of objects that were written within the last ten minutes.
    pub written_bytes: Used,
}

impl SharesStatus {
    /// The columns of a table of shares.
    pub(super) const HEADING: [&'static str; 12] = [
        "REQUESTS",
        "WATCHES",
        "SESSIONS",
        "SEATS",
        "BODIES MIB",
        "LISTS MIB",
        "EVENTS MIB",
        "HEADS MIB",
        "QUEUE MIB",
        "NAMESPACES",
        "STORED MIB",
        "WRITTEN MIB",
    ];

    /// The cells of a row below [`Self::HEADING`].
    pub(super) fn cells(&self) -> [Used; 12] {
        let Self { requests, watches, sessions, seats, namespaces, .. } = *self;
        let Self { body_bytes, list_bytes, event_bytes, head_bytes, queued_bytes, stored_bytes, written_bytes, .. } =
            *self;
        let [bodies, lists, events, heads, queue, stored, written] =
            [body_bytes, list_bytes, event_bytes, head_bytes, queued_bytes, stored_bytes, written_bytes]
                .map(Used::in_mib);
        [requests, watches, sessions, seats, bodies, lists, events, heads, queue, namespaces, stored, written]
    }
}
