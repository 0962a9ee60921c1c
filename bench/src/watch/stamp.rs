//! The number and the sending time of a change, in an annotation that watchers find without parsing the object.

use std::ops::Range;
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
/// The length of the value, in bytes: 10 digits for the number, a space, and 15 digits for the time in microseconds.
const LENGTH: usize = 26;
/// The key as an API server encodes it. Managed fields do not match, because they have `f:` before the key.
const PRINTED: &[u8] = br#""bench/sent":""#;

// === impl Stamp ===

impl Stamp {
    /// A merge patch (RFC 7396) that writes the annotation.
    pub(crate) fn patch(self) -> String {
        format!(r#"{{"metadata":{{"annotations":{{"{KEY}":"{}"}}}}}}"#, self.text())
    }

    /// The value of the annotation. All values have the same length, so that one can replace another one in a stored object.
    pub(crate) fn text(self) -> String {
        format!("{:010} {:015}", self.number, self.sent.as_micros())
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

/// The annotation without a stamp: its key, and a value of the same length as a stamp. [`Stamp::find`] ignores it.
pub(crate) fn placeholder() -> (&'static str, String) {
    (KEY, "-".repeat(LENGTH))
}

/// The position of the annotation's value in an object that etcd stores. kube-apiserver stores objects as protobuf: the entry of a map has
/// the key as field 1, and the value as field 2, with its length before it.
pub(crate) fn value_in(stored: &[u8]) -> Option<Range<usize>> {
    let tag_and_length = [0x12, u8::try_from(LENGTH).ok()?];
    let begin = memmem::find(stored, &[KEY.as_bytes(), &tag_and_length].concat())? + KEY.len() + tag_and_length.len();
    (begin + LENGTH <= stored.len()).then_some(begin..begin + LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_stored_object_is_found() {
        let text = Stamp { number: u32::MAX, sent: Duration::from_secs(86_400) }.text();
        let stored = format!("k8s\0\x62\x26\x0a\x0a{KEY}\x12\x1a{text}{{\"f:{KEY}\":{{}}}}");
        assert_eq!(&stored.as_bytes()[value_in(stored.as_bytes()).unwrap()], text.as_bytes());
        for length in 0..stored.find('{').unwrap() {
            assert_eq!(value_in(&stored.as_bytes()[..length]), None);
        }
    }

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
        let (key, value) = placeholder();
        assert_eq!(value.len(), Stamp { number: 0, sent: Duration::ZERO }.text().len());
        assert_eq!(Stamp::find(format!(r#"{{"{key}":"{value}"}}"#).as_bytes()), None);
    }
}
