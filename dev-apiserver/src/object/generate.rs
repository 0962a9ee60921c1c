//! Generating uids, times, suffixes of names, and hashes.

use jiff::Timestamp;
use serde_json::Value;

/// The characters of suffixes, which form no words (apimachinery's `rand.String`).
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The current time in the format of `Time`.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The current time in the format of `MicroTime`.
pub(crate) fn now_in_micros() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A random version 4 UUID (RFC 9562, section 5.4). Nothing depends on its secrecy.
pub(crate) fn new_uid() -> String {
    let bits = fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let mut uid = String::with_capacity(36);
    for (at, digit) in hex.chars().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            uid.push('-');
        }
        uid.push(digit);
    }
    uid
}

/// A random suffix for names (apimachinery's `rand.String`).
pub(crate) fn suffix(length: usize) -> String {
    (0..length).map(|_| char::from(ALPHABET[fastrand::usize(..ALPHABET.len())])).collect()
}

/// A short hash of a value, as in `pod-template-hash`.
pub(crate) fn hash(value: &Value) -> String {
    // FNV-1a over the JSON text. Keys are sorted, so equal values have equal texts.
    let text = value.to_string();
    let digest = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // The characters of suffixes instead of digits (apimachinery's `rand.SafeEncodeString`).
    digest.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_uuid_of_version_4() {
        let uid = new_uid();
        assert_eq!(uid.len(), 36);
        assert_eq!((&uid[14..15], uid[19..20].contains(['8', '9', 'a', 'b'])), ("4", true), "{uid}");
    }
}
