//! Watches in protobuf.
//!
//! A frame is a length and a `WatchEvent` (apimachinery's meta/v1 generated.proto), whose object has its envelope. A whole frame
//! is in memory, so its length is known when it is sent.

use bytes::Bytes;
use kube_wire::Status;
use kube_wire::envelope::Envelope;
use kube_wire::proto::Writer;
use kube_wire::watch::{EventType, ProtobufFrames};

use super::error::{StreamError, Unreadable};
use super::filter::{Filter, Verdict};
use super::limit::DEFAULT_ITEM_LIMIT;
use super::protobuf::{Content, KEY, Kind, METADATA, ObjectReader, status};
use super::settings::Settings;
use super::watch::{Arrived, Beginning, Bookmark, END_OF_STATE, FrameWaits, Progress};
use super::whole::View;
use crate::protobuf::{Found, Splice};
use crate::{Mapping, Program, Sink};

/// `WatchEvent`.
const TYPE: u32 = 1;
const OBJECT: u32 = 2;
/// `raw` of `RawExtension` (apimachinery's runtime generated.proto).
const RAW: u32 = 1;
/// `ObjectMeta` in apimachinery's meta/v1 generated.proto.
const RESOURCE_VERSION: u32 = 6;
const ANNOTATIONS: u32 = 12;

/// Shows a watch that arrives in chunks.
pub struct ProtoWatchStream {
    view: Settings,
    kind: Kind,
    filter: Filter,
    frames: ProtobufFrames,
    /// The state for bookmarks, if there are any.
    progress: Option<Progress>,
    waits: FrameWaits,
    /// A frame that waits for names. What has arrived after it is in `frames`.
    waiting: Option<Bytes>,
}

// === impl ProtoWatchStream ===

impl ProtoWatchStream {
    /// Shows the events of objects that pass `filter`, each by `program`.
    pub fn new(view: View, program: &Program, filter: Filter) -> Result<Self, Unreadable> {
        let mut view = view.into_settings();
        let (frames, waits) = (ProtobufFrames::new(DEFAULT_ITEM_LIMIT), FrameWaits::default());
        view.mapping = waits.collecting(view.mapping);
        Ok(Self { view, kind: Kind::of(program)?, filter, frames, progress: None, waits, waiting: None })
    }

    /// Allows this many bytes for one frame instead of [`DEFAULT_ITEM_LIMIT`].
    #[must_use]
    pub fn limited_to(mut self, limit: usize) -> Self {
        self.frames = ProtobufFrames::new(limit);
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
        let [kind, api_version, version] = self.progress.as_ref()?.parts()?;
        let texts = [kind, api_version].map(|text| std::str::from_utf8(text).ok());
        let [Some(kind), Some(api_version)] = texts else { return None };
        let raw = message(METADATA, &message(RESOURCE_VERSION, version));
        let object = Envelope { api_version, kind, raw: &raw, ..Envelope::default() }.encode();
        event(EventType::Bookmark, &object)
    }

    /// A frame that ends the watch with this Status, to send after all frames so far. `None` if it is too long.
    pub fn error(&self, status: &Status) -> Option<Bytes> {
        event(EventType::Error, &status.to_protobuf())
    }

    /// Uses newer names from the next frame on, because a watch outlives many namespaces.
    pub fn remap(&mut self, mapping: Mapping) {
        let kinds = self.view.mapping.objects.kinds();
        self.view.mapping = self.waits.collecting(mapping).with_renamed_kinds(kinds);
    }

    /// Adds the next chunk, of any length, and writes what is complete to `sink`. Do not use the stream after an error. An
    /// event in a namespace that the mapping does not know is hidden.
    pub fn push(&mut self, chunk: &[u8], sink: &mut impl Sink) -> Result<(), StreamError> {
        self.frames.push(chunk)?;
        self.frames(None, sink)
    }

    /// The same, but a frame with a namespace that the mapping does not know waits, and so does everything after it. If the
    /// result names such namespaces, call [`resume`](Self::resume) before anything else.
    pub fn read(&mut self, chunk: &[u8], sink: &mut impl Sink) -> Result<Arrived, StreamError> {
        self.frames.push(chunk)?;
        self.resume(sink)
    }

    /// Handles the frame that waits again, after [`remap`](Self::remap) or [`give_up`](Self::give_up), and what has arrived
    /// after it. It may wait again.
    pub fn resume(&mut self, sink: &mut impl Sink) -> Result<Arrived, StreamError> {
        let mut arrived = Arrived::default();
        self.frames(Some(&mut arrived), sink)?;
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
        self.frames.held() + self.waiting.as_ref().map_or(0, Bytes::len)
    }

    /// Ends the watch: there are no more chunks. A watch may end at any time, but not within a frame.
    pub fn finish(&self) -> Result<(), StreamError> {
        match self.waiting {
            Some(_) => Err(StreamError::Cut),
            None => Ok(self.frames.finish()?),
        }
    }

    /// Handles all frames that have arrived. Without `arrived`, no frame waits.
    fn frames(&mut self, mut arrived: Option<&mut Arrived>, sink: &mut impl Sink) -> Result<(), StreamError> {
        while let Some(frame) = self.next_frame()? {
            self.waits.begin();
            let shown = show(&self.view, &self.kind, self.filter, &frame)?;
            // A Status names what the client has requested, whether it exists or not.
            if let Some(arrived) = arrived.as_deref_mut().filter(|_| !is_of_type(&frame, EventType::Error)) {
                if self.waits.must_wait(arrived) {
                    self.waiting = Some(frame);
                    break;
                }
                if is_of_type(&frame, EventType::Bookmark) {
                    arrived.bookmarks.push(bookmark_in(&frame)?);
                }
            }
            if let Some(shown) = shown {
                sink.emit(ProtobufFrames::encode(&shown)?.into());
            }
            if let Some(progress) = &mut self.progress {
                note(progress, &frame)?;
            }
        }
        Ok(())
    }

    /// The frame that waits, or else the next one.
    fn next_frame(&mut self) -> Result<Option<Bytes>, StreamError> {
        match self.waiting.take() {
            Some(frame) => Ok(Some(frame)),
            None => Ok(self.frames.next_frame()?.map(Bytes::copy_from_slice)),
        }
    }
}

impl std::fmt::Debug for ProtoWatchStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProtoWatchStream").field("filter", &self.filter).finish_non_exhaustive()
    }
}

/// A message with one field.
fn message(number: u32, inside: &[u8]) -> Vec<u8> {
    let mut message = Writer::new();
    message.bytes(number, inside);
    message.into_bytes()
}

/// The frame of an event with this object, in its envelope.
fn event(event: EventType, object: &[u8]) -> Option<Bytes> {
    let mut frame = Writer::new();
    frame.bytes(TYPE, event.as_str().as_bytes());
    frame.bytes(OBJECT, &message(RAW, object));
    ProtobufFrames::encode(&frame.into_bytes()).ok().map(Bytes::from)
}

/// The mapped frame. `None` if it is hidden.
fn show(view: &Settings, kind: &Kind, filter: Filter, frame: &Bytes) -> Result<Option<Vec<u8>>, Unreadable> {
    let splice = Splice::new(frame);
    let event = splice.text(&(0..frame.len()), Some(TYPE))?;
    // It is visible to everyone.
    let filter = if event == EventType::Bookmark.as_str().as_bytes() { Filter::Everything } else { filter };
    let Some(object) = splice.only(&(0..frame.len()), OBJECT)? else { return Ok(Some(frame.to_vec())) };
    let Some(raw) = splice.only(&object.inside, RAW)? else { return Ok(Some(frame.to_vec())) };
    let envelope = Envelope::decode(splice.bytes(&raw))?;
    let content = kind.content(envelope.api_version, envelope.kind)?;
    let mut reader = ObjectReader::new(view, kind, filter, splice);
    let outer = reader.splice().enter(&object);
    match content {
        Content::Status => {
            let status = status(view, reader.splice().bytes(&raw))?;
            reader.splice().replace(&raw, status);
        }
        Content::Object(part) => {
            let around = reader.splice().enter(&raw);
            if reader.enveloped(part, raw.inside.clone())? == Verdict::Foreign {
                return Ok(None);
            }
            reader.splice().leave(&raw, around);
        }
        Content::List(_) => {
            let (api_version, kind) = (envelope.api_version.to_owned(), envelope.kind.to_owned());
            return Err(Unreadable::Kind { api_version, kind });
        }
    }
    reader.splice().leave(&object, outer);
    let mut shown: Vec<Bytes> = Vec::new();
    reader.into_splice().finish(frame, &mut shown);
    Ok(Some(shown.concat()))
}

/// Records the progress of the watch.
fn note(progress: &mut Progress, frame: &[u8]) -> Result<(), Unreadable> {
    let splice = Splice::new(frame);
    let event = splice.text(&(0..frame.len()), Some(TYPE))?;
    let Some(object) = splice.only(&(0..frame.len()), OBJECT)? else { return Ok(()) };
    if event == EventType::Error.as_str().as_bytes() {
        return Ok(());
    }
    let envelope = Envelope::decode(splice.text(&object.inside, Some(RAW))?)?;
    let inner = Splice::new(envelope.raw);
    let Some(metadata) = inner.only(&(0..envelope.raw.len()), METADATA)? else { return Ok(()) };
    if event == EventType::Bookmark.as_str().as_bytes() {
        progress.note_bookmark(ends_state(&inner, &metadata)?);
    }
    let version = inner.text(&metadata.inside, Some(RESOURCE_VERSION))?;
    let parts = [envelope.kind.as_bytes(), envelope.api_version.as_bytes(), version];
    progress.note_parts(parts.map(|part| Some(part).filter(|part| !part.is_empty())));
    Ok(())
}

/// Whether a frame, which has been read, is an event of this type.
fn is_of_type(frame: &[u8], event: EventType) -> bool {
    Splice::new(frame).text(&(0..frame.len()), Some(TYPE)).is_ok_and(|found| found == event.as_str().as_bytes())
}

/// The bookmark in a frame.
fn bookmark_in(frame: &[u8]) -> Result<Bookmark, Unreadable> {
    let splice = Splice::new(frame);
    let Some(object) = splice.only(&(0..frame.len()), OBJECT)? else { return Ok(Bookmark::default()) };
    let envelope = Envelope::decode(splice.text(&object.inside, Some(RAW))?)?;
    let inner = Splice::new(envelope.raw);
    let metadata = inner.only(&(0..envelope.raw.len()), METADATA)?;
    let Some(metadata) = metadata else { return Ok(Bookmark::default()) };
    let version = inner.text(&metadata.inside, Some(RESOURCE_VERSION))?;
    let resource_version = Bytes::copy_from_slice(version);
    Ok(Bookmark { resource_version, ends_initial_events: ends_state(&inner, &metadata)? })
}

/// Whether the `metadata` of a bookmark marks the end of the state.
fn ends_state(inner: &Splice<'_>, metadata: &Found) -> Result<bool, Unreadable> {
    let mut marked = false;
    let mut annotations = inner.fields(metadata.inside.clone());
    while let Some(annotation) = annotations.next(|number| number == ANNOTATIONS)? {
        marked |= inner.text(&annotation.inside, Some(KEY))? == END_OF_STATE.as_bytes();
    }
    Ok(marked)
}
