//! The same in protobuf, for clients that accept nothing else.
//!
//! The decisions are those for JSON. This module only finds and removes the same fields in the other encoding. The envelope of
//! an object has its type, so one function handles all responses of the host: an object, its metadata, a list of either, or a
//! Status.
//!
//! Reading order: [`Kind`], `object` (the places of an object), `list`, `watch`.

use bytes::Bytes;
use kube_wire::Status;
use kube_wire::envelope::{Envelope, EnvelopeError, MAGIC};
use kube_wire::proto::WireError;

use super::{Filter, StreamError, Verdict, View};
use crate::json::Malformed;
use crate::protobuf::{KindProgram, Message, Splice};
use crate::{Program, Sink};

mod condition;
mod entry;
mod list;
mod node_ports;
mod object;
mod reference;
mod selector;
mod watch;

pub use list::{DEFAULT_LIST_LIMIT, ProtoListStream};
pub use watch::ProtoWatchStream;

use object::ObjectReader;

/// `raw` of `runtime.Unknown` (apimachinery's `pkg/runtime/generated.proto`).
const RAW: u32 = 2;
/// `metadata` of every kind, and of every list (for instance `Pod` and `PodList` in core/v1 generated.proto).
const METADATA: u32 = 1;

/// A body in protobuf cannot be shown, because it is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// Not an object in protobuf.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// It contains invalid JSON.
    #[error(transparent)]
    Json(#[from] Malformed),
    /// The envelope contains compressed data, or not protobuf.
    #[error("the object is wrapped in something else than protobuf")]
    Wrapped,
    /// Another kind of object than requested.
    #[error("it is {kind:?} of {api_version:?}, which was not asked for")]
    Kind {
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
    /// The engine does not know a protobuf encoding of the kind.
    #[error("the protobuf schema of this kind is not known")]
    NoSchema,
}

/// The places of one kind: by keys, and by numbers.
struct Kind {
    program: Program,
    message: KindProgram,
}

/// The type of object in an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Status,
    Object(Part),
    List(Part),
}

/// Whether it is a whole object or only its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    /// `meta.k8s.io` `PartialObjectMetadata`, in which `metadata` has the number that it has everywhere.
    Metadata,
}

// === impl View ===

impl View {
    /// The response to any request but a watch: an object or its metadata, a Status, or a whole list.
    pub fn protobuf(
        &self,
        program: &Program,
        filter: Filter,
        body: &Bytes,
        sink: &mut impl Sink,
    ) -> Result<Verdict, Unreadable> {
        let envelope = Envelope::decode(body)?;
        let kind = Kind::of(program)?;
        let part = match kind.content(envelope.api_version, envelope.kind)? {
            Content::Status => {
                sink.emit(self.status(body)?);
                return Ok(Verdict::Shown);
            }
            Content::List(_) => {
                let mut list = ProtoListStream::new(self.clone(), program.clone(), filter);
                // Not longer than the body, which is already in memory.
                list = list.limited_to(body.len(), usize::MAX);
                let shown = list.push(body).and_then(|()| list.finish());
                shown.map_err(StreamError::unreadable)?.into_iter().for_each(|piece| sink.emit(piece));
                return Ok(Verdict::Shown);
            }
            Content::Object(part) => part,
        };
        let mut reader = ObjectReader::new(self, &kind, filter, Splice::new(body));
        let verdict = reader.enveloped(part, 0..body.len())?;
        if verdict == Verdict::Shown {
            reader.splice.finish(body, sink);
        }
        Ok(verdict)
    }

    /// A Status in its envelope. It is short, and has only the fields of the type in `kube_wire`.
    fn status(&self, body: &[u8]) -> Result<Bytes, Unreadable> {
        let broken = |_| Unreadable::Envelope(EnvelopeError::Wire(WireError::Truncated));
        let json = Status::from_protobuf(body).map_err(broken)?.to_json();
        let mut shown: Vec<Bytes> = Vec::new();
        self.object(&Program::default(), Filter::Everything, &json.into(), &mut shown)?;
        let status = Status::from_json(&shown.concat()).map_err(broken)?;
        Ok(status.to_protobuf().into())
    }
}

// === impl Kind ===

impl Kind {
    fn of(program: &Program) -> Result<Self, Unreadable> {
        let message = program.shown_message().ok_or(Unreadable::NoSchema)?;
        let message = KindProgram::of_responses(message, program).map_err(|_| Unreadable::NoSchema)?;
        Ok(Self { program: program.clone(), message })
    }

    fn root(&self) -> &Message {
        self.message.root()
    }

    /// The content of an envelope with this API version and kind.
    fn content(&self, api_version: &str, kind: &str) -> Result<Content, Unreadable> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_ours = (group, version) == (self.message.group, self.message.version);
        Ok(match (group, version, kind) {
            ("", "v1", "Status") => Content::Status,
            ("meta.k8s.io", "v1" | "v1beta1", "PartialObjectMetadata") => Content::Object(Part::Metadata),
            ("meta.k8s.io", "v1" | "v1beta1", "PartialObjectMetadataList") => Content::List(Part::Metadata),
            _ if is_ours && kind == self.message.kind => Content::Object(Part::Whole),
            _ if is_ours && kind.strip_suffix("List") == Some(self.message.kind) => Content::List(Part::Whole),
            _ => return Err(Unreadable::Kind { api_version: api_version.to_owned(), kind: kind.to_owned() }),
        })
    }
}

/// Checks that the bytes begin with the prefix of every object.
fn behind_magic(bytes: &[u8]) -> Result<usize, Unreadable> {
    if bytes.starts_with(&MAGIC) { Ok(MAGIC.len()) } else { Err(EnvelopeError::Magic.into()) }
}

impl From<WireError> for Unreadable {
    fn from(error: WireError) -> Self {
        Self::Envelope(error.into())
    }
}

#[cfg(test)]
mod tests;
