//! One frame of a watch, parsed.

use kube_wire::watch::EventType;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::error::ApiError;

/// An event of a watch.
#[derive(Debug)]
pub(super) enum Event {
    Applied(Box<RawValue>),
    Deleted(Box<RawValue>),
    Bookmark,
}

#[derive(Deserialize)]
struct FrameForm {
    r#type: String,
    object: Box<RawValue>,
}

// === impl Event ===

impl Event {
    /// The event of a frame, and the version of its object. An ERROR event is an error.
    pub(super) fn parse(frame: &[u8]) -> Result<(Self, String), ApiError> {
        let FrameForm { r#type, object } = serde_json::from_slice(frame).map_err(ApiError::Json)?;
        let event_type = EventType::parse(&r#type).ok_or_else(|| unknown(&r#type))?;
        if event_type == EventType::Error {
            return Err(ApiError::of_event(object.get().as_bytes()));
        }
        let version = version_of(&object)?;
        let event = match event_type {
            EventType::Added | EventType::Modified => Self::Applied(object),
            EventType::Deleted => Self::Deleted(object),
            EventType::Bookmark | EventType::Error => Self::Bookmark,
        };
        Ok((event, version))
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

fn unknown(event_type: &str) -> ApiError {
    ApiError::Json(serde::de::Error::custom(format_args!("unknown event type {event_type:?}")))
}
