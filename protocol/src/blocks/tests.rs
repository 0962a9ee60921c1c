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

/// The blocks of chunks, which are sent while the link is slow or fast.
fn encoded(chunks: &[(Bytes, bool)]) -> Vec<Bytes> {
    let (mut encoder, mut blocks) = (Encoder::default(), Vec::new());
    for (chunk, is_slow) in chunks {
        encoder.push(chunk.clone());
        blocks.extend(std::iter::from_fn(|| encoder.encode(*is_slow)));
    }
    blocks
}

/// What the decoder makes of these bytes, and whether the body may end after them.
fn decoded(pieces: impl IntoIterator<Item = Bytes>) -> Result<(Vec<Bytes>, bool), DecodeError> {
    let (mut decoder, mut chunks) = (Decoder::default(), Vec::new());
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
    let events: Vec<_> = (0..100).map(|number| (event(number), true)).collect();
    let (mut encoder, mut decoder, mut sent) = (Encoder::default(), Decoder::default(), 0);
    for (event, _) in &events {
        encoder.push(event.clone());
        let block = encoder.encode(true).unwrap();
        assert!(encoder.encode(true).is_none() && encoder.is_empty());
        sent += block.len();
        decoder.push(block);
        assert_eq!(decoder.decode().unwrap().as_ref(), Some(event));
    }
    let total: usize = events.iter().map(|(event, _)| event.len()).sum();
    assert!(sent * 8 < total, "{sent} of {total} bytes");
}

#[test]
fn a_fast_link_gets_the_bytes_themselves() {
    let (short, long) = (event(1), Bytes::from(vec![7; 100_000]));
    let blocks = encoded(&[(short.clone(), false), (long.clone(), false)]);
    assert_eq!(blocks.iter().map(Bytes::len).collect::<Vec<_>>(), [4 + short.len(), 4, long.len()]);
    assert_eq!(blocks[2].as_ptr(), long.as_ptr(), "it is not copied");
    assert_eq!(decoded(blocks).unwrap(), (vec![short, long], true));
}

#[test]
fn random_bytes_grow_by_the_header() {
    let bytes: Vec<u8> = (0..200_000_u32)
        .map(|number| number.wrapping_mul(2_654_435_761).rotate_left(number).to_be_bytes()[0])
        .collect();
    let blocks = encoded(&[(bytes.clone().into(), true)]);
    assert!(length(&blocks) <= bytes.len() + 4 * 4, "{}", length(&blocks));
    assert_eq!(decoded(blocks).unwrap().0.concat(), bytes);
}

#[test]
fn hostile_blocks_are_errors() {
    let header = |word: u32| Bytes::copy_from_slice(&word.to_be_bytes());
    // No length, an unknown coding, a block that is too long to collect.
    for word in [0, 1 << 30, 3 << 30 | 1, 64 * 1024 + 1, 1 << 30 | (64 * 1024 + 1)] {
        assert!(matches!(decoded([header(word)]), Err(DecodeError::Header(_))), "{word:#x}");
    }
    // Not zstd, and a frame that decodes to more bytes than a block may have.
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(1 << 20));
    zstd_safe::compress(&mut frame, &vec![0; 1 << 20], 3).unwrap();
    for content in [b"no zstd".to_vec(), frame] {
        let block = [&u32::try_from(content.len()).unwrap().to_be_bytes()[..], &content].concat();
        assert!(matches!(decoded([block.into()]), Err(DecodeError::Content(_))));
    }
    assert!(!decoded([header(5)]).unwrap().1, "it ends within a block");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// However a body is cut, and whenever the link changes, the decoder returns what the encoder got.
    #[test]
    fn decoding_is_the_inverse_of_encoding(
        chunks in prop::collection::vec((prop_oneof![
            (0..200_usize).prop_map(event),
            prop::collection::vec(any::<u8>(), 0..100).prop_map(Bytes::from),
            (0..200_000_usize).prop_map(|length| Bytes::from(vec![1; length])),
        ], any::<bool>()), 0..8),
        cuts in prop::collection::vec(1..5_000_usize, 1..8),
    ) {
        let bytes: Vec<u8> = encoded(&chunks).concat();
        let (mut pieces, mut rest) = (Vec::new(), Bytes::from(bytes));
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            pieces.push(rest.split_to(rest.len().min(*cut)));
        }
        let (received, is_between) = decoded(pieces).unwrap();
        let sent: Vec<u8> = chunks.iter().flat_map(|(chunk, _)| chunk.clone()).collect();
        prop_assert!(is_between);
        prop_assert_eq!(received.concat(), sent);
    }

    #[test]
    fn hostile_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decoded([Bytes::from(bytes)]);
    }
}
