//! Compressed bodies: from a hostile peer, and from our own encoder.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::blocks::{Decoder, Encoder, Histories};

fuzz_target!(|pieces: Vec<Vec<u8>>| {
    let (sender, receiver) = (Histories::sender(), Histories::receiver());
    let mut decoder = Decoder::new(&receiver);
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

    let (mut encoder, mut decoder, mut decoded) = (Encoder::new(&sender), Decoder::new(&receiver), Vec::new());
    for piece in &pieces {
        encoder.push(Bytes::copy_from_slice(piece));
        while let Some(block) = encoder.encode() {
            decoder.push(block);
            while let Some(bytes) = decoder.decode().expect("our own blocks are valid") {
                decoded.extend_from_slice(&bytes);
            }
        }
    }
    assert!(decoder.is_between_blocks());
    assert_eq!(decoded, pieces.concat());
});
