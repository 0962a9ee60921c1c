//! The content of an envelope.

use super::super::error::Unreadable;
use crate::Program;
use crate::protobuf::{KindProgram, Message};

/// The places of one kind: by keys, and by numbers.
pub(in crate::view) struct Kind {
    pub(super) program: Program,
    message: KindProgram,
}

/// The type of object in an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Content {
    Status,
    Object(Part),
    List(Part),
}

/// Whether it is a whole object or only its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Part {
    Whole,
    /// `meta.k8s.io` `PartialObjectMetadata`, in which `metadata` has the number that it has everywhere.
    Metadata,
}

// === impl Kind ===

impl Kind {
    pub(in crate::view) fn of(program: &Program) -> Result<Self, Unreadable> {
        let message = program.shown_message().ok_or(Unreadable::NoSchema)?;
        let message = KindProgram::of_responses(message, program).map_err(|_| Unreadable::NoSchema)?;
        Ok(Self { program: program.clone(), message })
    }

    pub(super) fn root(&self) -> &Message {
        self.message.root()
    }

    /// The content of an envelope with this API version and kind.
    pub(in crate::view) fn content(&self, api_version: &str, kind: &str) -> Result<Content, Unreadable> {
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
