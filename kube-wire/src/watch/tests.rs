use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::status::Status;

/// Splits a stream in pieces of the given lengths, which repeat, and collects the frames.
fn json_frames(stream: &[u8], lengths: &[usize], limit: usize) -> Result<Vec<Vec<u8>>, FrameError> {
    let mut frames = JsonFrames::new(limit);
    let mut found = Vec::new();
    for chunk in chunks(stream, lengths) {
        frames.push(chunk)?;
        while let Some(frame) = frames.next_frame()? {
            found.push(frame.to_vec());
        }
    }
    frames.finish()?;
    Ok(found)
}

fn protobuf_frames(stream: &[u8], lengths: &[usize], limit: usize) -> Result<Vec<Vec<u8>>, FrameError> {
    let mut frames = ProtobufFrames::new(limit);
    let mut found = Vec::new();
    for chunk in chunks(stream, lengths) {
        frames.push(chunk)?;
        while let Some(frame) = frames.next_frame()? {
            found.push(frame.to_vec());
        }
    }
    frames.finish()?;
    Ok(found)
}

fn chunks<'a>(mut stream: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    for length in lengths.iter().cycle() {
        if stream.is_empty() {
            break;
        }
        let (chunk, rest) = stream.split_at((*length).min(stream.len()));
        chunks.push(chunk);
        stream = rest;
    }
    chunks
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = "[a-z\"\\\\{}\\[\\]\n\té😀]{0,8}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(text, inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::hash_map("[a-z\"\\\\}]{0,4}", any_json(), 0..4).prop_map(|map| map.into_iter().collect())
}

#[test]
fn frames_too_large_are_an_error_early() {
    let limit = 10;
    let too_large = Err(FrameError::TooLarge { limit });
    assert_eq!(json_frames(br#"{"a":"12"}"#, &[3], limit), Ok(vec![br#"{"a":"12"}"#.to_vec()]));
    assert_eq!(json_frames(br#"{"a":"123"}"#, &[1], limit), too_large);
    assert_eq!(json_frames(br#"{"a":"123"}"#, &[100], limit), too_large);
    assert_eq!(json_frames(br#"{"a":"123456789"#, &[4], limit), too_large);
    // The length alone is enough for the error.
    assert_eq!(protobuf_frames(&[0, 0, 0, 11], &[4], limit), too_large);
    assert_eq!(protobuf_frames(&[0xff; 4], &[1], limit), too_large);
    assert_eq!(protobuf_frames(&[0, 0, 0, 0], &[1], limit), Ok(vec![vec![]]));
}

#[test]
fn pending_frames_are_not_accumulated() {
    let mut frames = JsonFrames::new(10);
    let refused = (0..20).find_map(|_| frames.push(b"{}{}{}{}").err());
    assert_eq!(refused, Some(FrameError::TooLarge { limit: 10 }));
}

#[test]
fn invalid_frames_are_errors() {
    for (stream, byte) in
        [(&b"[1]"[..], b'['), (b"{} x", b'x'), (b"}", b'}'), (b"\"a\"", b'"'), (b"\0", 0), (b"\x0c{}", 12)]
    {
        assert_eq!(json_frames(stream, &[1], 100), Err(FrameError::NotAnObject { byte }), "{stream:?}");
    }
    for cut in [&b"{"[..], b"{} {\"a", b"{\"a\\", b"{\"a\":[}"] {
        assert_eq!(json_frames(cut, &[2], 100), Err(FrameError::Truncated), "{cut:?}");
    }
    assert_eq!(json_frames(b" \n\r\t", &[1], 100), Ok(vec![]));
    assert_eq!(protobuf_frames(&[0, 0, 0], &[1], 100), Err(FrameError::Truncated));
    assert_eq!(protobuf_frames(&[0, 0, 0, 2, 1], &[1], 100), Err(FrameError::Truncated));
}

#[test]
fn an_error_event_is_one_frame() {
    let frame = error_event(&Status::expired("too old"));
    assert_eq!(frame.last(), Some(&b'\n'));
    let value: Value = serde_json::from_slice(&frame).unwrap();
    assert_eq!((&value["type"], &value["object"]["code"]), (&Value::from("ERROR"), &Value::from(410)));
    assert_eq!(json_frames(&frame, &[7], 1000).unwrap().len(), 1);
    assert_eq!(EventType::parse("BOOKMARK"), Some(EventType::Bookmark));
    assert_eq!(EventType::parse("bookmark"), None);
}

proptest! {
    /// The frames are those of `serde_json`'s own stream reader.
    #[test]
    fn json_frames_are_those_of_serde_json(
        objects in prop::collection::vec((any_object(), any::<bool>(), "[ \n\t\r]{0,3}"), 0..5),
        lengths in prop::collection::vec(1_usize..20, 1..6),
    ) {
        let mut stream = Vec::new();
        for (object, pretty, space) in &objects {
            let text = if *pretty { serde_json::to_vec_pretty(object) } else { serde_json::to_vec(object) };
            stream.extend(text.unwrap());
            stream.extend(space.as_bytes());
        }
        let frames = json_frames(&stream, &lengths, 1 << 20).unwrap();
        let expected: Vec<Value> = serde_json::Deserializer::from_slice(&stream).into_iter().map(Result::unwrap).collect();
        let found: Vec<Value> = frames.iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn chunking_makes_no_difference(
        stream in "[{}\\[\\]\"\\\\a \n]{0,40}",
        lengths in prop::collection::vec(1_usize..7, 1..6),
        limit in 1_usize..30,
    ) {
        // The frames before an error also depend only on the bytes. This compares the results.
        let whole = json_frames(stream.as_bytes(), &[stream.len().max(1)], limit);
        prop_assert_eq!(json_frames(stream.as_bytes(), &lengths, limit), whole);
    }

    #[test]
    fn protobuf_frames_have_an_inverse(
        messages in prop::collection::vec(any::<Vec<u8>>(), 0..5),
        lengths in prop::collection::vec(1_usize..20, 1..6),
    ) {
        let stream: Vec<u8> = messages.iter().flat_map(|message| ProtobufFrames::encode(message).unwrap()).collect();
        prop_assert_eq!(protobuf_frames(&stream, &lengths, 1 << 20).unwrap(), messages);
    }

    #[test]
    fn no_input_panics(stream: Vec<u8>, lengths in prop::collection::vec(1_usize..9, 1..4)) {
        let _ = json_frames(&stream, &lengths, 64);
        let _ = protobuf_frames(&stream, &lengths, 64);
    }
}
