//! The progress of a watch, including hidden events.
//!
//! A client resumes a watch at the last version that it received. If all events belong to others, it receives none, and after
//! a while its version is too old (410). A bookmark updates it (KEP-956), after all events up to that version: not among the
//! initial events with the state, whose versions are in no order.

use bytes::Bytes;

use super::arrived::Bookmark;
use crate::json::{Cursor, Malformed};

/// How a watch begins, according to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// With the events after a version.
    Changes,
    /// With the state at some moment. Only a later bookmark shows where it ends.
    State,
    /// With the state at some moment. A marked bookmark shows where it ends (KEP-3157).
    MarkedState,
}

/// The annotation of the bookmark at the end of the state (`InitialEventsAnnotationKey` in apimachinery's meta/v1).
pub(in crate::view) const END_OF_STATE: &str = "k8s.io/initial-events-end";

/// The kind and version of the last object, and the phase of the watch.
#[derive(Debug)]
pub(in crate::view) struct Progress {
    /// The kind of beginning while the state arrives. `None` once events are in the order of their versions.
    state: Option<Beginning>,
    kind: Vec<u8>,
    api_version: Vec<u8>,
    version: Vec<u8>,
}

// === impl Progress ===

impl Progress {
    pub(in crate::view) fn new(beginning: Beginning) -> Self {
        let state = Some(beginning).filter(|beginning| *beginning != Beginning::Changes);
        Self { state, kind: Vec::new(), api_version: Vec::new(), version: Vec::new() }
    }

    /// Records a whole frame, which is the next value.
    pub(super) fn note(&mut self, frame: &Cursor<'_>) -> Result<(), Malformed> {
        let event = frame.look_up("type")?;
        let is_bookmark = event.is_some_and(|event| event.is("BOOKMARK"));
        let Some(object) = frame.member_at("object")? else { return Ok(()) };
        if event.is_some_and(|event| event.is("ERROR")) {
            return Ok(());
        }
        let Some(metadata) = object.member_at("metadata")? else { return Ok(()) };
        if is_bookmark {
            self.note_bookmark(ends_state(&metadata)?);
        }
        let texts = [object.look_up("kind")?, object.look_up("apiVersion")?, metadata.look_up("resourceVersion")?];
        self.note_parts(texts.map(|text| text.map(|text| text.raw)));
        Ok(())
    }

    /// Records a bookmark. The one at the end of the state is `marked`.
    pub(in crate::view) fn note_bookmark(&mut self, marked: bool) {
        if marked || self.state != Some(Beginning::MarkedState) {
            self.state = None;
        }
    }

    /// Records the kind, API version and resource version of an object.
    pub(in crate::view) fn note_parts(&mut self, parts: [Option<&[u8]>; 3]) {
        for (known, part) in [&mut self.kind, &mut self.api_version, &mut self.version].into_iter().zip(parts) {
            if let Some(part) = part
                && *known != part
            {
                known.clear();
                known.extend_from_slice(part);
            }
        }
    }

    /// The kind, API version and resource version for a bookmark. `None` before the state is complete.
    pub(in crate::view) fn parts(&self) -> Option<[&[u8]; 3]> {
        let parts: [&[u8]; 3] = [&self.kind, &self.api_version, &self.version];
        (self.state.is_none() && parts.iter().all(|part| !part.is_empty())).then_some(parts)
    }

    /// A bookmark frame. `shown` returns the virtual cluster's name of a kind of the host, if it differs.
    pub(super) fn bookmark(&self, shown: impl Fn(&[u8]) -> Option<&'static str>) -> Option<Bytes> {
        let [kind, api_version, version] = self.parts()?;
        let frame: [&[u8]; 7] = [
            br#"{"type":"BOOKMARK","object":{"kind":""#,
            shown(kind).map_or(kind, str::as_bytes),
            br#"","apiVersion":""#,
            api_version,
            br#"","metadata":{"resourceVersion":""#,
            version,
            b"\"}}}\n",
        ];
        Some(frame.concat().into())
    }
}

/// The bookmark in a whole frame, which is the next value.
pub(crate) fn bookmark_in(frame: &Cursor<'_>) -> Result<Bookmark, Malformed> {
    let object = frame.member_at("object")?;
    let metadata = object.map(|object| object.member_at("metadata")).transpose()?.flatten();
    let Some(metadata) = metadata else { return Ok(Bookmark::default()) };
    let version = metadata.look_up("resourceVersion")?;
    let resource_version = version.map_or(Bytes::new(), |version| version.bytes().into_owned().into());
    Ok(Bookmark { resource_version, ends_initial_events: ends_state(&metadata)? })
}

/// Whether the `metadata` of a bookmark marks the end of the state.
fn ends_state(metadata: &Cursor<'_>) -> Result<bool, Malformed> {
    let annotations = metadata.member_at("annotations")?;
    Ok(annotations.map(|annotations| annotations.look_up(END_OF_STATE)).transpose()?.flatten().is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{Filter, WatchStream};
    use super::*;
    use crate::schema::program_for;
    use crate::view::tests::view;

    fn watch(beginning: Beginning) -> WatchStream {
        WatchStream::new(view(), program_for("", "v1", "pods"), Filter::ByNamespace).beginning_with(beginning)
    }

    fn event(kind: &str, namespace: &str, version: &str) -> String {
        let metadata = json!({"name": "a", "namespace": namespace, "resourceVersion": version});
        json!({"type": kind, "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}}).to_string() + "\n"
    }

    fn mark(version: &str, ends: bool) -> String {
        let annotations = if ends { json!({"k8s.io/initial-events-end": "true"}) } else { json!({}) };
        let metadata = json!({"resourceVersion": version, "annotations": annotations});
        json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}}).to_string()
            + "\n"
    }

    /// The version in the bookmark after each of some texts; empty if there is none.
    fn bookmarked(watch: &mut WatchStream, texts: &[String]) -> Vec<String> {
        let after = |text: &String| {
            watch.push(&Bytes::from(text.clone()), &mut Vec::<Bytes>::new()).unwrap();
            let Some(bookmark) = watch.bookmark() else { return String::new() };
            assert!(bookmark.ends_with(b"\n"));
            let frame: Value = serde_json::from_slice(&bookmark).unwrap();
            let version = frame["object"]["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
            let object = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": version}});
            assert_eq!(frame, json!({"type": "BOOKMARK", "object": object}));
            version
        };
        texts.iter().map(after).collect()
    }

    #[test]
    fn events_of_others_are_progress() {
        let mut watch = watch(Beginning::Changes);
        assert_eq!(watch.bookmark(), None, "nothing is known yet");
        let texts =
            [event("ADDED", "edge-hz", "5"), event("DELETED", "edge-ke", "7"), event("MODIFIED", "edge-hz", "9")];
        assert_eq!(bookmarked(&mut watch, &texts), ["5", "7", "9"]);
        let error =
            json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": 410}});
        assert_eq!(bookmarked(&mut watch, &[error.to_string() + "\n"]), ["9"]);
    }

    #[test]
    fn there_is_no_bookmark_before_the_state_is_complete() {
        let texts = [event("ADDED", "edge-hz", "9"), mark("9", false), event("ADDED", "edge-ke", "3"), mark("9", true)];
        assert_eq!(bookmarked(&mut watch(Beginning::MarkedState), &texts), ["", "", "", "9"]);
        let texts = [event("ADDED", "edge-hz", "9"), mark("9", false), event("ADDED", "edge-hz", "12")];
        assert_eq!(bookmarked(&mut watch(Beginning::State), &texts), ["", "9", "12"]);
    }

    #[test]
    fn a_bookmark_has_its_own_line() {
        let text = [event("ADDED", "edge-hz", "5"), event("ADDED", "edge-ke", "6")].concat();
        let mut watch = watch(Beginning::Changes);
        let whole = text.len() - 1;
        let frames = event("ADDED", "edge-hz", "5").len();
        for (range, version) in [
            (0..frames, "5"),
            // An incomplete frame does not count.
            (frames..whole - 1, "5"),
            // The frame is complete, and its line is not.
            (whole - 1..whole, ""),
            (whole..whole + 1, "6"),
        ] {
            assert_eq!(bookmarked(&mut watch, &[text[range.clone()].to_owned()]), [version], "{range:?}");
        }
    }

    #[test]
    fn a_watch_without_bookmarks_reports_no_progress() {
        let mut watch = WatchStream::new(view(), program_for("", "v1", "pods"), Filter::ByNamespace);
        assert_eq!(bookmarked(&mut watch, &[event("ADDED", "edge-ke", "5")]), [""]);
    }
}
