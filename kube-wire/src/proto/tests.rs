use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Item {
    Varint(u64),
    Bytes(Vec<u8>),
}

fn read_all(message: &[u8]) -> Result<Vec<Field<'_>>, WireError> {
    let mut reader = Reader::new(message);
    let mut fields = Vec::new();
    while let Some(field) = reader.next_field()? {
        fields.push(field);
    }
    Ok(fields)
}

#[test]
fn reads_the_examples_of_the_specification() {
    // https://protobuf.dev/programming-guides/encoding/: a = 150; b = "testing".
    let fields = read_all(b"\x08\x96\x01\x12\x07testing").unwrap();
    assert_eq!(fields[0], Field { number: 1, value: Value::Varint(150), span: 0..3 });
    assert_eq!(fields[1], Field { number: 2, value: Value::Bytes(b"testing"), span: 3..12 });
    assert_eq!(fields[1].text(), Ok("testing"));
    assert_eq!(fields[0].text(), Err(WireError::UnexpectedType(1)));
    let fixed = read_all(b"\x0d\x01\0\0\0\x11\x02\0\0\0\0\0\0\0").unwrap();
    assert_eq!((fixed[0].value, fixed[1].value), (Value::Fixed32(1), Value::Fixed64(2)));
}

#[test]
fn malformed_messages_are_errors() {
    use WireError::*;
    for (message, expected) in [
        (&b"\x08"[..], Truncated),
        (b"\x08\x80", Truncated),
        (b"\x0a\x02a", Truncated),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Truncated),
        (b"\x0d\0\0\0", Truncated),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", Overflow),
        (b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", Overflow),
        (b"\0\x01", FieldNumber),
        (b"\x80\x80\x80\x80\x10\x01", FieldNumber),
        (b"\x0b\x0c", WireType(3)),
        (b"\x0c", WireType(4)),
        (b"\x0f", WireType(7)),
    ] {
        assert_eq!(read_all(message), Err(expected), "{message:?}");
    }
}

#[test]
fn depth_is_limited() {
    let mut reader = Reader::new(b"");
    for _ in 0..MAX_DEPTH {
        reader = reader.nested(b"").unwrap();
    }
    assert_eq!(reader.nested(b"").map(|_| ()), Err(WireError::TooDeep));
}

proptest! {
    #[test]
    fn writing_has_an_inverse(items in prop::collection::vec(
        (1_u32..1 << 29, prop_oneof![any::<u64>().prop_map(Item::Varint), any::<Vec<u8>>().prop_map(Item::Bytes)]),
        0..6,
    )) {
        let mut writer = Writer::new();
        for (number, item) in &items {
            match item {
                Item::Varint(value) => writer.varint(*number, *value),
                Item::Bytes(bytes) => writer.bytes(*number, bytes),
            }
        }
        let message = writer.into_bytes();
        let fields = read_all(&message).unwrap();
        prop_assert_eq!(fields.len(), items.len());
        let mut copy = Writer::new();
        for (field, (number, item)) in fields.iter().zip(&items) {
            prop_assert_eq!(field.number, *number);
            match item {
                Item::Varint(value) => prop_assert_eq!(field.value, Value::Varint(*value)),
                Item::Bytes(bytes) => prop_assert_eq!(field.value, Value::Bytes(bytes)),
            }
            copy.raw(&message[field.span.clone()]);
        }
        prop_assert_eq!(copy.into_bytes(), message);
    }

    #[test]
    fn varint_len_is_the_length(number: u64) {
        let mut writer = Writer::new();
        writer.raw_varint(number);
        prop_assert_eq!(writer.into_bytes().len(), varint_len(number));
    }

    #[test]
    fn no_input_panics(message in any::<Vec<u8>>()) {
        let _ = read_all(&message);
    }
}
