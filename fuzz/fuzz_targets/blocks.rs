//! Compressed bodies: from a hostile peer, and from our own encoder. A body arrives in pieces that end with line feeds.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::blocks::{Decoder, Encoder, Histories};

fuzz_target!(|bytes: &[u8]| {
    let pieces: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
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
