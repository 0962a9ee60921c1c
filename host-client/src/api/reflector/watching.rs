//! One watch: converts bytes to events, and tracks the resource version from which to continue.

use http_body_util::BodyExt as _;
use kube_wire::Status;
use kube_wire::watch::{EventType, JsonFrames};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::HostBody;
use crate::api::error::ApiError;

/// The maximum length of an event, in bytes. etcd's limit for an object is 1.5 MiB in protobuf.
const MAX_EVENT: usize = 16 * 1024 * 1024;

/// An event of a watch.
#[derive(Debug)]
pub(super) enum Event {
    Applied(Box<RawValue>),
    Deleted(Box<RawValue>),
}

/// A watch that has begun.
#[derive(Debug)]
pub(super) struct Watching {
    body: HostBody,
    frames: JsonFrames,
    resource_version: String,
}

#[derive(Deserialize)]
struct FrameForm {
    r#type: String,
    object: Box<RawValue>,
}

// === impl Watching ===

impl Watching {
    pub(super) fn new(body: HostBody, resource_version: String) -> Self {
        Self { body, frames: JsonFrames::new(MAX_EVENT), resource_version }
    }

    /// The last known version. All events up to it have been returned.
    pub(super) fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// The events of the next chunk, which may be empty; `None` at the end. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<Option<Vec<Event>>, ApiError> {
        let Some(frame) = self.body.frame().await else {
            // A watch that ends within a frame counts like one that ends before it.
            return Ok(None);
        };
        let Ok(chunk) = frame?.into_data() else { return Ok(Some(Vec::new())) };
        self.frames.push(&chunk)?;
        let mut events = Vec::new();
        // All or none are returned, so that the resource version is never ahead of the returned events.
        let mut resource_version = None;
        while let Some(frame) = self.frames.next_frame()? {
            let FrameForm { r#type, object } = serde_json::from_slice(frame).map_err(ApiError::Json)?;
            let event_type = EventType::parse(&r#type).ok_or_else(|| unknown(&r#type))?;
            if event_type == EventType::Error {
                return Err(refusal(&object));
            }
            resource_version = Some(version_of(&object)?);
            match event_type {
                EventType::Added | EventType::Modified => events.push(Event::Applied(object)),
                EventType::Deleted => events.push(Event::Deleted(object)),
                EventType::Bookmark | EventType::Error => {}
            }
        }
        if let Some(version) = resource_version {
            self.resource_version = version;
        }
        Ok(Some(events))
    }
}

fn version_of(object: &RawValue) -> Result<String, ApiError> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
    }
    let object: Object = serde_json::from_str(object.get()).map_err(ApiError::Json)?;
    Ok(object.metadata.resource_version)
}

fn refusal(object: &RawValue) -> ApiError {
    match Status::from_json(object.get().as_bytes()) {
        Ok(status) => ApiError::Status(Box::new(status)),
        Err(_) => ApiError::Json(serde::de::Error::custom("an ERROR event without a Status")),
    }
}

fn unknown(event_type: &str) -> ApiError {
    ApiError::Json(serde::de::Error::custom(format_args!("unknown event type {event_type:?}")))
}
