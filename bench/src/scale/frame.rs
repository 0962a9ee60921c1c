//! What an informer reads in a frame of a watch, without parsing the object.

use memchr::memmem;
use serde::Deserialize;

/// A frame of a watch in JSON, as kube-apiserver prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WatchFrame {
    /// ADDED, MODIFIED or DELETED.
    Change { version: String },
    /// A bookmark.
    Bookmark { version: String, initial_events_end: bool },
    /// The watch has failed with this code, for example 410.
    Error { code: u16 },
}

/// The frame is not one of kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a watch frame has no type or no resourceVersion")]
pub(super) struct InvalidFrame;

/// The first `resourceVersion` is that of the object: the metadata precedes all other fields with this name in objects
/// of the resources that kube-apiserver defines. Managed fields do not match, because they have `f:` before the key.
const VERSION: &[u8] = br#""resourceVersion":""#;
const INITIAL_EVENTS_END: &[u8] = br#""k8s.io/initial-events-end":"true""#;

// === impl WatchFrame ===

impl WatchFrame {
    pub(super) fn read(frame: &[u8]) -> Result<Self, InvalidFrame> {
        let rest = frame.strip_prefix(br#"{"type":""#).ok_or(InvalidFrame)?;
        if rest.starts_with(b"ERROR") {
            return Ok(Self::Error { code: error_code(frame) });
        }
        let version = version(rest).ok_or(InvalidFrame)?.to_owned();
        if rest.starts_with(b"BOOKMARK") {
            let initial_events_end = memmem::find(rest, INITIAL_EVENTS_END).is_some();
            return Ok(Self::Bookmark { version, initial_events_end });
        }
        Ok(Self::Change { version })
    }
}

fn version(frame: &[u8]) -> Option<&str> {
    let begin = memmem::find(frame, VERSION)? + VERSION.len();
    let length = memchr::memchr(b'"', &frame[begin..])?;
    std::str::from_utf8(&frame[begin..begin + length]).ok()
}

/// The code of the Status in an error frame, or 0.
fn error_code(frame: &[u8]) -> u16 {
    #[derive(Deserialize)]
    struct Event {
        object: Status,
    }
    #[derive(Deserialize)]
    struct Status {
        #[serde(default)]
        code: u16,
    }
    serde_json::from_slice::<Event>(frame).map_or(0, |event| event.object.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_bookmarks_have_a_version() {
        let fields = r#""managedFields":[{"fieldsV1":{"f:metadata":{"f:resourceVersion":{}}}}]"#;
        let change = format!(
            r#"{{"type":"MODIFIED","object":{{"kind":"Event","metadata":{{{fields},"resourceVersion":"12"}},"involvedObject":{{"resourceVersion":"9"}}}}}}"#
        );
        assert_eq!(WatchFrame::read(change.as_bytes()), Ok(WatchFrame::Change { version: "12".to_owned() }));
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"13"}}}"#;
        let read = WatchFrame::Bookmark { version: "13".to_owned(), initial_events_end: false };
        assert_eq!(WatchFrame::read(bookmark.as_bytes()), Ok(read));
        let end = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"14","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        let read = WatchFrame::Bookmark { version: "14".to_owned(), initial_events_end: true };
        assert_eq!(WatchFrame::read(end.as_bytes()), Ok(read));
    }

    #[test]
    fn errors_have_a_code() {
        let gone = r#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"status":"Failure","code":410}}"#;
        assert_eq!(WatchFrame::read(gone.as_bytes()), Ok(WatchFrame::Error { code: 410 }));
        assert_eq!(WatchFrame::read(br#"{"type":"ERROR","object":{}}"#), Ok(WatchFrame::Error { code: 0 }));
    }

    #[test]
    fn other_frames_are_invalid() {
        for frame in ["", "{}", r#"{"type":"ADDED","object":{}}"#, r#"{"object":{"resourceVersion":"1"}}"#] {
            assert_eq!(WatchFrame::read(frame.as_bytes()), Err(InvalidFrame), "{frame}");
        }
    }
}
