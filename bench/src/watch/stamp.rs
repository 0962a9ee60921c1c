//! The number and the sending time of a change, in an annotation that watchers find without parsing the object.

use std::time::Duration;

use memchr::memmem;

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) number: u32,
    /// The time since the beginning of the run.
    pub(crate) sent: Duration,
}

const KEY: &str = "bench/sent";
/// The key as an API server encodes it. Managed fields do not match, because they have `f:` before the key.
const PRINTED: &[u8] = br#""bench/sent":""#;

// === impl Stamp ===

impl Stamp {
    /// A merge patch (RFC 7396) that writes the annotation.
    pub(crate) fn patch(self) -> String {
        format!(r#"{{"metadata":{{"annotations":{{"{KEY}":"{} {}"}}}}}}"#, self.number, self.sent.as_micros())
    }

    /// The stamp of the object in a watch frame. Bookmarks and unchanged objects have none.
    pub(crate) fn find(frame: &[u8]) -> Option<Self> {
        let begin = memmem::find(frame, PRINTED)? + PRINTED.len();
        let length = memchr::memchr(b'"', &frame[begin..])?;
        let text = std::str::from_utf8(&frame[begin..begin + length]).ok()?;
        let (number, micros) = text.split_once(' ')?;
        Some(Self { number: number.parse().ok()?, sent: Duration::from_micros(micros.parse().ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_stamp_is_found() {
        let stamp = Stamp { number: 7, sent: Duration::from_micros(1_234_567) };
        let fields = r#""managedFields":[{"fieldsV1":{"f:metadata":{"f:annotations":{"f:bench/sent":{}}}}}]"#;
        let frame = format!(r#"{{"type":"MODIFIED","object":{{{fields},{}}}}}"#, &stamp.patch()[1..]);
        assert_eq!(Stamp::find(frame.as_bytes()), Some(stamp));
    }

    #[test]
    fn other_frames_have_no_stamp() {
        for frame in
            ["", r#"{"type":"BOOKMARK"}"#, r#"{"bench/sent":"#, r#"{"bench/sent":"x"}"#, r#"{"bench/sent":"1 x"}"#]
        {
            assert_eq!(Stamp::find(frame.as_bytes()), None, "{frame}");
        }
    }
}
