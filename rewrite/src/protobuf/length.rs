//! The lengths of fields, in their encoded form.

use bytes::Bytes;
use kube_wire::proto::Writer;

/// Almost all messages around a name are shorter. Such a length has one or two bytes ("Base 128 Varints" in the specification
/// of the encoding).
const USUAL: usize = 1 << 13;

/// The encoded forms of such lengths. Each field around a name that changes gets another length, and an allocation for each of
/// them would take longer than finding the fields.
static SHORT: [[u8; 2]; USUAL] = short();

#[expect(clippy::cast_possible_truncation, reason = "seven bits each")]
const fn short() -> [[u8; 2]; USUAL] {
    let mut encoded = [[0; 2]; USUAL];
    let mut length = 0;
    while length < USUAL {
        let (low, high) = ((length & 0x7f) as u8, (length >> 7) as u8);
        encoded[length] = if high == 0 { [low, 0] } else { [low | 0x80, high] };
        length += 1;
    }
    encoded
}

/// A length in its shortest encoded form.
pub(super) fn encoded(length: usize) -> Bytes {
    match SHORT.get(length) {
        Some([low, _]) if length < 0x80 => Bytes::from_static(std::slice::from_ref(low)),
        Some(both) => Bytes::from_static(both),
        None => {
            let mut varint = Writer::new();
            varint.raw_varint(length as u64);
            varint.into_bytes().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lengths_are_encoded_as_the_writer_does() {
        for length in (0..2 * USUAL).chain([usize::MAX]) {
            let mut varint = Writer::new();
            varint.raw_varint(length as u64);
            assert_eq!(encoded(length), varint.into_bytes(), "{length}");
        }
    }
}
