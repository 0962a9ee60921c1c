//! Watches: each event is shown or hidden as a whole.
//!
//! A frame is one JSON object, `{"type":"ADDED","object":{...}}` (`WatchEvent` in apimachinery's watch.go). The line
//! feed after it is forwarded with it at once, because some clients read lines.

use std::fmt;

use bytes::Bytes;
use kube_wire::Status;
use kube_wire::watch::error_event;

use super::binding::shown_kind;
use super::error::StreamError;
use super::filter::{Filter, Verdict};
use super::limit::DEFAULT_ITEM_LIMIT;
use super::object::Reader;
use super::settings::Settings;
use super::showing::Showing;
use super::status::{is_status, status};
use super::table::{Columns, is_table};
use super::value_buffer::ValueBuffer;
use super::whole::View;
use crate::json::{Cursor, Defect, Edits, Malformed, Outcome};
use crate::program::walk;
use crate::{Mapping, Program, Sink};

mod arrived;
mod progress;

pub(super) use arrived::FrameWaits;
pub(crate) use progress::bookmark_in;
pub(super) use progress::{END_OF_STATE, Progress};

pub use arrived::{Arrived, Bookmark};
pub use progress::Beginning;

/// Shows a watch that arrives in chunks.
pub struct WatchStream {
    showing: Showing,
    limit: usize,
    /// The frame that began in an earlier chunk.
    buffer: Option<ValueBuffer>,
    /// Whether the last frame was left out, and so the white space behind it.
    left_out: bool,
    /// Whether a frame was forwarded without the line feed after it.
    on_line: bool,
    /// The state for bookmarks, if there are any.
    progress: Option<Progress>,
    waits: FrameWaits,
    waiting: Option<Waiting>,
    columns: Columns,
    edits: Edits,
}

/// A frame that waits for names, and what has arrived after it.
struct Waiting {
    frames: Bytes,
    /// Whether `frames` is the one frame that began in an earlier chunk.
    is_whole: bool,
    rest: Bytes,
}

/// Why the frames of a window were not all handled.
enum Stop {
    /// The frame at this offset is incomplete.
    Incomplete(usize),
    /// The frame at this offset has names that the mapping does not know.
    Unknown(usize),
}

/// The type of an event's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventType {
    /// A Status.
    Error,
    /// Only a resource version.
    Bookmark,
    /// `MODIFIED`: an object that leaves the cluster with it is shown once more.
    Modified,
    /// `ADDED`, `DELETED`, and types of later versions of Kubernetes.
    Change,
}

// === impl WatchStream ===

impl WatchStream {
    /// Shows the events of objects that pass `filter`, each by `program`.
    pub fn new(view: View, program: Program, filter: Filter) -> Self {
        let mut settings = view.into_settings();
        let waits = FrameWaits::default();
        settings.mapping = waits.collecting(settings.mapping);
        Self {
            showing: Showing { settings, program, filter },
            limit: DEFAULT_ITEM_LIMIT,
            buffer: None,
            left_out: false,
            on_line: false,
            progress: None,
            waits,
            waiting: None,
            columns: Columns::default(),
            edits: Edits::new(),
        }
    }

    /// Allows this many bytes for one frame instead of [`DEFAULT_ITEM_LIMIT`].
    #[must_use]
    pub fn limited_to(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Keeps the state for [`bookmark`](Self::bookmark).
    #[must_use]
    pub fn beginning_with(mut self, beginning: Beginning) -> Self {
        self.progress = Some(Progress::new(beginning));
        self
    }

    /// A frame with the progress of the watch, to send after all frames so far. `None` if the progress is not known now.
    pub fn bookmark(&self) -> Option<Bytes> {
        let progress = self.progress.as_ref().filter(|_| !self.on_line)?;
        let renamed = self.showing.program.is_of_cluster_bindings();
        progress.bookmark(|kind| shown_kind(kind).filter(|_| renamed))
    }

    /// A frame that ends the watch with this Status, to send after all frames so far.
    pub fn error(&self, status: &Status) -> Bytes {
        let mut frame = error_event(status);
        if self.on_line {
            frame.insert(0, b'\n');
        }
        frame.into()
    }

    /// Uses newer names from the next frame on, because a watch outlives many namespaces.
    pub fn remap(&mut self, mapping: Mapping) {
        let names = &mut self.showing.settings.mapping;
        *names = self.waits.collecting(mapping).with_renamed_kinds(names.objects.kinds());
    }

    /// How the next frame is shown.
    pub fn showing(&self) -> &Showing {
        &self.showing
    }

    /// Whether the next chunk begins with a frame.
    pub fn is_between_frames(&self) -> bool {
        self.buffer.is_none() && self.waiting.is_none() && !self.on_line
    }

    /// Updates the state of this stream as if it had [read](Self::read) this frame. Another stream with the same [`Showing`] has
    /// read it. The frame ends with a line feed. `is_shown`: whether the other stream has written anything. Call this only
    /// [between frames](Self::is_between_frames).
    pub fn count(&mut self, frame: &Bytes, is_shown: bool) -> Result<(), StreamError> {
        if let Some(progress) = &mut self.progress {
            progress.note(&Cursor::new(frame, 0, 0))?;
        }
        self.left_out = !is_shown;
        Ok(())
    }

    /// Adds the next chunk, of any length, and writes what is complete to `sink`. Do not use the stream after an error. An
    /// event in a namespace that the mapping does not know is hidden.
    pub fn push(&mut self, chunk: &Bytes, sink: &mut impl Sink) -> Result<(), StreamError> {
        self.chunk(chunk, None, sink)
    }

    /// The same, but a frame with a namespace that the mapping does not know waits, and so does everything after it. If the
    /// result names such namespaces, call [`resume`](Self::resume) before anything else.
    pub fn read(&mut self, chunk: &Bytes, sink: &mut impl Sink) -> Result<Arrived, StreamError> {
        let mut arrived = Arrived::default();
        self.chunk(chunk, Some(&mut arrived), sink)?;
        Ok(arrived)
    }

    /// Handles the frame that waits again, after [`remap`](Self::remap) or [`give_up`](Self::give_up), and what has arrived
    /// after it. It may wait again.
    pub fn resume(&mut self, sink: &mut impl Sink) -> Result<Arrived, StreamError> {
        let mut arrived = Arrived::default();
        if let Some(Waiting { frames, is_whole, rest }) = self.waiting.take() {
            self.window(&frames, is_whole, &rest, Some(&mut arrived), sink)?;
        }
        Ok(arrived)
    }

    /// The names for which a frame waits will not become known: neither this frame nor a later one waits for them any more.
    pub fn give_up(&mut self) {
        if self.is_waiting() {
            self.waits.give_up();
        }
    }

    /// Whether a frame waits for [`resume`](Self::resume).
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// The bytes of frames that have not arrived whole, or that wait.
    pub fn held(&self) -> usize {
        let waiting = self.waiting.as_ref().map_or(0, |waiting| waiting.frames.len() + waiting.rest.len());
        self.buffer.as_ref().map_or(0, ValueBuffer::len) + waiting
    }

    /// Ends the watch: there are no more chunks. A watch may end at any time, but not within a frame.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        match self.held() {
            0 => Ok(()),
            held => Err(Malformed { offset: held, defect: Defect::UnexpectedEnd }.into()),
        }
    }

    /// Handles a chunk. Without `arrived`, no frame waits.
    fn chunk(&mut self, chunk: &Bytes, arrived: Option<&mut Arrived>, sink: &mut impl Sink) -> Result<(), StreamError> {
        let Some(buffer) = &mut self.buffer else { return self.window(chunk, false, &Bytes::new(), arrived, sink) };
        let end = buffer.fill(chunk);
        if buffer.len() > self.limit {
            return Err(StreamError::TooLong { limit: self.limit });
        }
        let Some(rest) = end else { return Ok(()) };
        let frame = self.buffer.take().expect("just filled").into_bytes();
        self.window(&frame, true, &chunk.slice(rest..), arrived, sink)
    }

    /// Handles a window, which has exactly one frame if it `is_whole`, and then the `rest`.
    fn window(
        &mut self,
        window: &Bytes,
        is_whole: bool,
        rest: &Bytes,
        mut arrived: Option<&mut Arrived>,
        sink: &mut impl Sink,
    ) -> Result<(), StreamError> {
        match self.frames(window, arrived.as_deref_mut(), sink)? {
            None if rest.is_empty() => Ok(()),
            None => self.window(rest, false, &Bytes::new(), arrived, sink),
            Some(Stop::Unknown(start)) => {
                self.waiting = Some(Waiting { frames: window.slice(start..), is_whole, rest: rest.clone() });
                Ok(())
            }
            Some(Stop::Incomplete(_)) if is_whole => {
                Err(Malformed { offset: window.len(), defect: Defect::UnexpectedEnd }.into())
            }
            Some(Stop::Incomplete(start)) if window.len() - start > self.limit => {
                Err(StreamError::TooLong { limit: self.limit })
            }
            Some(Stop::Incomplete(start)) => {
                self.buffer = Some(ValueBuffer::begin(&window[start..]));
                Ok(())
            }
        }
    }

    /// Handles the frames of a window, as far as possible.
    fn frames(
        &mut self,
        window: &Bytes,
        mut arrived: Option<&mut Arrived>,
        sink: &mut impl Sink,
    ) -> Result<Option<Stop>, Malformed> {
        let mut cursor = Cursor::new(window, 0, 0);
        loop {
            let behind = cursor.at();
            let at_end = cursor.is_at_end();
            if behind < cursor.at() && !self.left_out {
                sink.emit(window.slice(behind..cursor.at()));
                self.on_line = false;
            }
            if at_end {
                return Ok(None);
            }
            let start = cursor.at();
            let begun = cursor.clone();
            self.edits.clear();
            self.waits.begin();
            let (event, verdict) = match self.frame(&mut cursor) {
                Ok(frame) => frame,
                Err(Malformed { defect: Defect::UnexpectedEnd, .. }) => return Ok(Some(Stop::Incomplete(start))),
                Err(malformed) => return Err(malformed),
            };
            // A Status names what the client has requested, whether it exists or not.
            if let Some(arrived) = arrived.as_deref_mut().filter(|_| event != EventType::Error) {
                if self.waits.must_wait(arrived) {
                    return Ok(Some(Stop::Unknown(start)));
                }
                if event == EventType::Bookmark {
                    arrived.bookmarks.push(bookmark_in(&begun)?);
                }
            }
            self.columns.settle();
            if let Some(progress) = &mut self.progress {
                progress.note(&begun)?;
            }
            self.left_out = verdict != Verdict::Shown;
            if !self.left_out {
                self.edits.splice(window, start..cursor.at(), sink);
                self.on_line = true;
            }
        }
    }

    fn frame(&mut self, cursor: &mut Cursor<'_>) -> Result<(EventType, Verdict), Malformed> {
        let named = cursor.look_up("type")?;
        let event = match named {
            Some(event) if event.is("BOOKMARK") => EventType::Bookmark,
            Some(event) if event.is("ERROR") => EventType::Error,
            Some(event) if event.is("MODIFIED") => EventType::Modified,
            _ => EventType::Change,
        };
        // A frame without an object has no information.
        let mut verdict = Verdict::Shown;
        let Self { showing: Showing { settings: view, program, filter }, columns, edits, .. } = self;
        cursor.object(edits, |cursor, edits, key| {
            if key.is("object") {
                let found = match event {
                    // It may be a Table with the columns. It is visible to everyone.
                    EventType::Bookmark => change(view, program, Filter::Everything, event, columns, cursor, edits)?,
                    EventType::Error => status(view, cursor, edits)?,
                    EventType::Modified | EventType::Change => {
                        change(view, program, *filter, event, columns, cursor, edits)?
                    }
                };
                if found != Verdict::Shown {
                    verdict = found;
                }
            } else {
                cursor.skip()?;
            }
            Ok::<_, Malformed>(Outcome::Keep)
        })?;
        if matches!(verdict, Verdict::Unselected | Verdict::Left) {
            // For a watch with a selector, an object that no longer matches is deleted; so is an object that has left
            // the cluster. It is not known whether the client has seen the object before, so clients can receive
            // deletions of objects that they do not know.
            verdict = match named.filter(|_| event == EventType::Modified) {
                Some(event) => {
                    edits.replace(event.range(), Bytes::from_static(b"DELETED"));
                    Verdict::Shown
                }
                None => Verdict::Foreign,
            };
        }
        Ok((event, verdict))
    }
}

impl fmt::Debug for WatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream").field("filter", &self.showing.filter).finish_non_exhaustive()
    }
}

/// The object of an event, or a Table of one row instead of it.
fn change(
    view: &Settings,
    program: &Program,
    filter: Filter,
    event: EventType,
    columns: &mut Columns,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<Verdict, Malformed> {
    let kind = cursor.look_up("kind")?;
    if kind.is_some_and(|kind| kind.is("Table")) && is_table(cursor)? {
        return columns.table(view, program, filter, event == EventType::Modified, cursor, edits);
    }
    if kind.is_some_and(|kind| kind.is("Status")) && is_status(cursor)? {
        return status(view, cursor, edits);
    }
    let mut reader = Reader::new(view, filter);
    walk(&mut reader, program.root(), cursor, edits)?;
    Ok(reader.conclude(program, cursor, edits))
}

#[cfg(test)]
mod tests;
