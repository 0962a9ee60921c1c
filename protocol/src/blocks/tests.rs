//! Bodies that are encoded and decoded.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// An event of a watch. The numbers make it differ from others.
fn event(number: usize) -> Bytes {
    let labels: Vec<_> = (0..40).map(|label| format!(r#""example.com/label-{label}":"value-{label}","#)).collect();
    let labels = labels.concat();
    let text = format!(
        r#"{{"type":"MODIFIED","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"pod-{number}","uid":"{number:032x}","labels":{{{labels}"app":"web"}}}}}}}}"#
    );
    Bytes::from(text + "\n")
}

/// The blocks of chunks.
fn encoded(chunks: &[Bytes]) -> Vec<Bytes> {
    let (mut encoder, mut blocks) = (Encoder::new(&Histories::sender()), Vec::new());
    for chunk in chunks {
        encoder.push(chunk.clone());
        blocks.extend(std::iter::from_fn(|| encoder.encode()));
    }
    blocks
}

/// What the decoder makes of these bytes, and whether the body may end after them.
fn decoded(pieces: impl IntoIterator<Item = Bytes>) -> Result<(Vec<Bytes>, bool), DecodeError> {
    let (mut decoder, mut chunks) = (Decoder::new(&Histories::receiver()), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        while let Some(chunk) = decoder.decode()? {
            assert!(!chunk.is_empty());
            chunks.push(chunk);
        }
    }
    Ok((chunks, decoder.is_between_blocks()))
}

fn length(chunks: &[Bytes]) -> usize {
    chunks.iter().map(Bytes::len).sum()
}

/// Each event can be read at once, and similar ones are short.
#[test]
fn events_are_blocks_that_compress_well() {
    let (sender, receiver) = (Histories::sender(), Histories::receiver());
    let (mut encoder, mut decoder) = (Encoder::new(&sender), Decoder::new(&receiver));
    let events: Vec<_> = (0..100).map(event).collect();
    let mut sent = 0;
    for event in &events {
        encoder.push(event.clone());
        let block = encoder.encode().unwrap();
        assert_eq!((encoder.encode(), encoder.remaining()), (None, 0));
        sent += block.len();
        decoder.push(block);
        assert_eq!(decoder.decode().unwrap().as_ref(), Some(event));
    }
    assert!(sent * 8 < length(&events), "{sent} of {} bytes", length(&events));
}

/// Watches that began at different times share the blocks of the events that they all send, after some of them.
#[test]
fn watches_share_the_blocks_of_the_same_events() {
    let histories = Histories::sender();
    let mut watches: Vec<_> = (0..3).map(|_| Encoder::new(&histories)).collect();
    let mut shared = Vec::new();
    for number in 0..20 {
        let mut blocks = Vec::new();
        for watch in watches.iter_mut().take(1 + number) {
            watch.push(event(number));
            blocks.push(watch.encode().unwrap());
        }
        shared.push(blocks.windows(2).all(|pair| pair[0].as_ptr() == pair[1].as_ptr()));
    }
    assert!(!shared[1] && shared[8..].iter().all(|shared| *shared), "{shared:?}");
}

/// Then blocks are longer.
#[test]
fn a_tunnel_has_a_limited_number_of_histories() {
    let (sender, receiver) = (Histories::of(1), Histories::of(1));
    let mut encoders = [Encoder::new(&sender), Encoder::new(&sender)];
    let mut decoders = [Decoder::new(&receiver), Decoder::new(&receiver)];
    let mut lengths = Vec::new();
    for (encoder, decoder) in encoders.iter_mut().zip(&mut decoders) {
        for number in 0..2 {
            encoder.push(event(number));
            let block = encoder.encode().unwrap();
            lengths.push(block.len());
            decoder.push(block);
            assert_eq!(decoder.decode().unwrap(), Some(event(number)));
        }
    }
    assert!(lengths[1] * 4 < lengths[0] && lengths[3].abs_diff(lengths[2]) < 10, "{lengths:?}");
    // A hostile sender keeps one more, and a free one is available again.
    let mut encoder = Encoder::new(&Histories::of(1));
    encoder.push(event(0));
    let (block, mut decoder) = (encoder.encode().unwrap(), Decoder::new(&receiver));
    decoder.push(block.clone());
    assert!(matches!(decoder.decode(), Err(DecodeError::TooManyHistories)));
    drop(decoders);
    let mut decoder = Decoder::new(&receiver);
    decoder.push(block);
    assert_eq!(decoder.decode().unwrap(), Some(event(0)));
}

#[test]
fn random_bytes_grow_by_the_header() {
    let bytes: Vec<u8> = (0..200_000_u32)
        .map(|number| number.wrapping_mul(2_654_435_761).rotate_left(number).to_be_bytes()[0])
        .collect();
    let blocks = encoded(&[bytes.clone().into()]);
    assert!(length(&blocks) <= bytes.len() + 4 * 4, "{}", length(&blocks));
    assert_eq!(decoded(blocks).unwrap().0.concat(), bytes);
}

#[test]
fn hostile_blocks_are_errors() {
    let header = |word: u32| Bytes::copy_from_slice(&word.to_be_bytes());
    // No length, and a block that is too long to collect.
    for word in [0, 1 << 30, 3 << 30, 64 * 1024 + 1, 1 << 30 | (64 * 1024 + 1), (1 << 30) - 1] {
        assert!(matches!(decoded([header(word)]), Err(DecodeError::Header(_))), "{word:#x}");
    }
    // Not zstd, a frame that decodes to more bytes than a block may have, and two frames.
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(1 << 20));
    zstd_safe::compress(&mut frame, &vec![0; 1 << 20], 3).unwrap();
    let mut byte = Vec::with_capacity(zstd_safe::compress_bound(1));
    zstd_safe::compress(&mut byte, b"a", 3).unwrap();
    for content in [b"no zstd".to_vec(), frame, byte.repeat(2)] {
        let header = u32::try_from(content.len()).unwrap() | 1 << 31;
        let block = [&header.to_be_bytes()[..], &content].concat();
        assert!(matches!(decoded([block.into()]), Err(DecodeError::Content(_))));
    }
    assert!(!decoded([header(5)]).unwrap().1, "it ends within a block");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// However a body is cut, the decoder returns what the encoder got.
    #[test]
    fn decoding_is_the_inverse_of_encoding(
        chunks in prop::collection::vec(prop_oneof![
            (0..200_usize).prop_map(event),
            prop::collection::vec(any::<u8>(), 0..100).prop_map(Bytes::from),
            (0..200_000_usize).prop_map(|length| Bytes::from(vec![1; length])),
        ], 0..8),
        cuts in prop::collection::vec(1..5_000_usize, 1..8),
    ) {
        let bytes: Vec<u8> = encoded(&chunks).concat();
        let (mut pieces, mut rest) = (Vec::new(), Bytes::from(bytes));
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            pieces.push(rest.split_to(rest.len().min(*cut)));
        }
        let (received, is_between) = decoded(pieces).unwrap();
        let sent: Vec<u8> = chunks.concat();
        prop_assert!(is_between);
        prop_assert_eq!(received.concat(), sent);
    }

    #[test]
    fn hostile_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decoded([Bytes::from(bytes)]);
    }
}

/// A new watch with nothing but a bookmark.
#[test]
fn a_bookmark_is_short() {
    let histories = Histories::sender();
    let lengths = [histories.clone(), histories.primed()].map(|histories| {
        let (mut encoder, mut decoder) = (Encoder::new(&histories), Decoder::new(&histories));
        let kinds = [("Pod", r#""spec":{"containers":null},"status":{}"#), ("Lease", r#""spec":{}"#)];
        kinds.map(|(kind, rest)| {
            let text = format!(
                r#"{{"type":"BOOKMARK","object":{{"kind":"{kind}","apiVersion":"v1","metadata":{{"resourceVersion":"48151"}},{rest}}}}}"#
            );
            let event = Bytes::from(text + "\n");
            encoder.push(event.clone());
            let block = encoder.encode().unwrap();
            decoder.push(block.clone());
            assert_eq!(decoder.decode().unwrap(), Some(event));
            block.len()
        })
    });
    let [plain, primed] = lengths;
    assert!(primed[0] * 3 < plain[0] && primed[0] < 48, "{primed:?} instead of {plain:?} bytes");
}

/// Also a body that has no history for a while, and one that lost it.
#[test]
fn primed_bodies_survive_without_histories() {
    let (sender, receiver) = (Histories::of(0).primed(), Histories::receiver().primed());
    let (mut encoder, mut decoder) = (Encoder::new(&sender), Decoder::new(&receiver));
    for number in 0..3 {
        encoder.push(event(number));
        decoder.push(encoder.encode().unwrap());
        assert_eq!(decoder.decode().unwrap(), Some(event(number)));
    }
}
