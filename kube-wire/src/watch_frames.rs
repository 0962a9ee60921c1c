//! Where a watch can end without cutting an event.
//!
//! A watch may end at any time, and clients then resume it. But client-go takes a reset stream for an error, and logs it
//! (`receive` in apimachinery's `pkg/watch/streamwatcher.go`). So if the tunnel breaks between two events, the response
//! ends normally, as if its time were over.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{Response, StatusCode};

/// The position in the frames of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFrames {
    /// A line for each event (`Framer` in apimachinery's `pkg/runtime/serializer/json`). JSON texts contain no line break.
    Json {
        /// Whether the bytes so far end with an event.
        is_between: bool,
    },
    /// Each event after its length: four bytes in big-endian order (`pkg/util/framer`).
    Protobuf {
        /// The length of the current event.
        prefix: [u8; PREFIX],
        /// How many bytes of it have been read.
        read: usize,
        /// How many bytes of the event are missing.
        left: usize,
    },
}

const PREFIX: usize = size_of::<u32>();

// === impl WatchFrames ===

impl WatchFrames {
    /// The beginning of a watch. `None` if the response is none, or if its format is unknown.
    pub fn of<B>(response: &Response<B>) -> Option<Self> {
        if response.status() != StatusCode::OK || response.headers().contains_key(CONTENT_ENCODING) {
            return None;
        }
        let media_type = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
        match media_type.split(';').next()?.trim() {
            "application/json" => Some(Self::Json { is_between: true }),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf { prefix: [0; PREFIX], read: 0, left: 0 }),
            _ => None,
        }
    }

    /// The next bytes of the body.
    pub fn push(&mut self, mut bytes: &[u8]) {
        match self {
            Self::Json { is_between } => *is_between = bytes.last().map_or(*is_between, |last| *last == b'\n'),
            Self::Protobuf { prefix, read, left } => loop {
                let skipped = bytes.len().min(*left);
                (bytes, *left) = (&bytes[skipped..], *left - skipped);
                let Some((first, rest)) = bytes.split_first() else { return };
                bytes = rest;
                prefix[*read] = *first;
                *read += 1;
                if *read == PREFIX {
                    let length = u32::from_be_bytes(*prefix);
                    (*read, *left) = (0, usize::try_from(length).unwrap_or(usize::MAX));
                }
            },
        }
    }

    /// Whether the bytes so far end with an event.
    pub fn is_between(&self) -> bool {
        match self {
            Self::Json { is_between } => *is_between,
            Self::Protobuf { read, left, .. } => *read == 0 && *left == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(media_type: &str) -> Option<WatchFrames> {
        WatchFrames::of(&Response::builder().header(CONTENT_TYPE, media_type).body(()).unwrap())
    }

    #[test]
    fn other_responses_are_no_watches() {
        assert_eq!(frames("text/plain"), None);
        assert_eq!(frames("application/cbor-seq"), None);
        let of = |status: u16, encoding: Option<&str>| {
            let response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
            let response =
                encoding.into_iter().fold(response, |response, value| response.header(CONTENT_ENCODING, value));
            WatchFrames::of(&response.body(()).unwrap())
        };
        assert_eq!(
            [of(200, None).is_some(), of(403, None).is_some(), of(200, Some("gzip")).is_some()],
            [true, false, false]
        );
    }

    proptest! {
        /// However the bytes are cut, only the ends of frames are between frames.
        #[test]
        fn the_ends_of_frames_are_found(
            events in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..6),
            cuts in prop::collection::vec(0..200_usize, 0..8),
            is_json: bool,
        ) {
            let (mut bytes, mut ends) = (Vec::new(), vec![0]);
            for event in events {
                if is_json {
                    bytes.extend(serde_json::to_vec(&String::from_utf8_lossy(&event)).unwrap());
                    bytes.push(b'\n');
                } else {
                    bytes.extend(u32::try_from(event.len()).unwrap().to_be_bytes());
                    bytes.extend(event);
                }
                ends.push(bytes.len());
            }
            let media_type = if is_json { "application/json" } else { "application/vnd.kubernetes.protobuf;stream=watch" };
            let mut watch = frames(media_type).unwrap();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([bytes.len()]).collect();
            cuts.sort_unstable();
            let mut at = 0;
            for cut in cuts {
                watch.push(&bytes[at..cut]);
                at = cut;
                prop_assert_eq!(watch.is_between(), ends.contains(&at), "after {} bytes", at);
            }
        }
    }
}
