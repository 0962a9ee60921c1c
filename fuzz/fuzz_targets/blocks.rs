//! Compressed bodies: from a hostile peer, and from our own encoder.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::blocks::{Decoder, Encoder};

fuzz_target!(|data: (bool, Vec<Vec<u8>>)| {
    let (is_slow, pieces) = data;
    let mut decoder = Decoder::default();
    'hostile: for piece in &pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        loop {
            match decoder.decode() {
                Ok(Some(bytes)) => assert!(!bytes.is_empty()),
                Ok(None) => break,
                Err(_) => break 'hostile,
            }
        }
    }

    let (mut encoder, mut decoder, mut decoded) = (Encoder::default(), Decoder::default(), Vec::new());
    for (number, piece) in pieces.iter().enumerate() {
        encoder.push(Bytes::copy_from_slice(piece));
        while let Some(block) = encoder.encode(is_slow ^ (number % 3 == 0)) {
            decoder.push(block);
            while let Some(bytes) = decoder.decode().expect("our own blocks are valid") {
                decoded.extend_from_slice(&bytes);
            }
        }
    }
    assert!(decoder.is_between_blocks());
    assert_eq!(decoded, pieces.concat());
});
