//! A watch in JSON or protobuf.

use bytes::Bytes;
use kube_wire::Status;
use rewrite::view::{Arrived, Beginning, ProtoWatchStream, Showing, StreamError, WatchStream};
use rewrite::{Mapping, Sink};

/// Maps the events of one watch.
pub(super) enum Events {
    Json(WatchStream),
    Protobuf(ProtoWatchStream),
}

// === impl Events ===

impl Events {
    pub(super) fn beginning_with(self, beginning: Beginning) -> Self {
        match self {
            Self::Json(watch) => Self::Json(watch.beginning_with(beginning)),
            Self::Protobuf(watch) => Self::Protobuf(watch.beginning_with(beginning)),
        }
    }

    pub(super) fn bookmark(&self) -> Option<Bytes> {
        match self {
            Self::Json(watch) => watch.bookmark(),
            Self::Protobuf(watch) => watch.bookmark(),
        }
    }

    /// An event that ends the watch with this Status.
    pub(super) fn error(&self, status: &Status) -> Option<Bytes> {
        match self {
            Self::Json(watch) => Some(watch.error(status)),
            Self::Protobuf(watch) => watch.error(status),
        }
    }

    pub(super) fn remap(&mut self, mapping: Mapping) {
        match self {
            Self::Json(watch) => watch.remap(mapping),
            Self::Protobuf(watch) => watch.remap(mapping),
        }
    }

    /// The bytes of events that are incomplete, or that wait.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Json(watch) => watch.held(),
            Self::Protobuf(watch) => watch.held(),
        }
    }

    /// Whether an event may end in this chunk.
    pub(super) fn may_end_in(&self, chunk: &Bytes) -> bool {
        match self {
            // The host writes a line feed after each event, which may be in the next chunk. Line feeds in texts are escaped.
            Self::Json(_) => chunk.last() == Some(&b'}') || memchr::memchr(b'\n', chunk).is_some(),
            Self::Protobuf(_) => true,
        }
    }

    /// How the next frame is shown, if the next chunk can begin with one. `None` for protobuf, because only watches of
    /// feeds need this, and feeds send JSON.
    pub(super) fn showing(&self) -> Option<&Showing> {
        match self {
            Self::Json(watch) => watch.is_between_frames().then(|| watch.showing()),
            Self::Protobuf(_) => None,
        }
    }

    /// Counts a frame that another watch has mapped.
    pub(super) fn count(&mut self, frame: &Bytes, is_shown: bool) -> Result<(), StreamError> {
        match self {
            Self::Json(watch) => watch.count(frame, is_shown),
            Self::Protobuf(_) => Ok(()),
        }
    }

    pub(super) fn read(&mut self, chunk: &Bytes, sink: &mut impl Sink) -> Result<Arrived, StreamError> {
        match self {
            Self::Json(watch) => watch.read(chunk, sink),
            Self::Protobuf(watch) => watch.read(chunk, sink),
        }
    }

    pub(super) fn resume(&mut self, sink: &mut impl Sink) -> Result<Arrived, StreamError> {
        match self {
            Self::Json(watch) => watch.resume(sink),
            Self::Protobuf(watch) => watch.resume(sink),
        }
    }

    pub(super) fn give_up(&mut self) {
        match self {
            Self::Json(watch) => watch.give_up(),
            Self::Protobuf(watch) => watch.give_up(),
        }
    }
}
