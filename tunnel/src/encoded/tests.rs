//! Bodies that are cut, and bodies with another length than their head says.

use std::collections::VecDeque;
use std::convert::Infallible;

use http_body_util::{BodyExt, Collected, Full, StreamBody};
use tokio_test::block_on;

use super::*;

const CHUNKS: [&str; 3] = ["first\n", "second\n", "third\n"];

struct Chunks(VecDeque<Result<Frame<Bytes>, Infallible>>);

impl futures_core::Stream for Chunks {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front())
    }
}

/// The blocks of these chunks.
fn blocks(chunks: &[&'static str]) -> Vec<Bytes> {
    let frames = chunks.iter().map(|chunk| Ok(Frame::data(Bytes::from(*chunk))));
    let mut sent = Encoded::new(StreamBody::new(Chunks(frames.collect())), &Histories::sender());
    let mut blocks = Vec::new();
    while let Some(frame) = block_on(sent.frame()) {
        blocks.push(frame.unwrap().into_data().unwrap());
    }
    blocks
}

fn received(bytes: &[u8], length: Option<u64>) -> Result<Bytes, DecodedError<Infallible>> {
    let body = Decoded::new(Full::new(Bytes::copy_from_slice(bytes)), &Histories::receiver(), length);
    block_on(body.collect()).map(Collected::to_bytes)
}

/// A body fails if it ends within a block.
#[test]
fn a_body_that_is_cut_is_no_complete_body() {
    let blocks = blocks(&CHUNKS);
    let (bytes, mut ends) = (blocks.concat(), vec![0]);
    for block in &blocks {
        ends.push(ends[ends.len() - 1] + block.len());
    }
    assert_eq!(received(&bytes, None).unwrap(), CHUNKS.concat());
    for end in 0..=bytes.len() {
        assert_eq!(received(&bytes[..end], None).is_ok(), ends.contains(&end), "{end} of {ends:?}");
    }
}

#[test]
fn the_length_of_the_head_is_that_of_the_body() {
    let (bytes, length) = (blocks(&CHUNKS).concat(), CHUNKS.concat().len() as u64);
    assert!(received(&bytes, Some(length)).is_ok());
    for wrong in [length - 1, length + 1, 0] {
        assert!(matches!(received(&bytes, Some(wrong)), Err(DecodedError::Decode(DecodeError::Length))), "{wrong}");
    }
}

#[test]
fn a_body_ends_with_its_first_error() {
    let mut body = Decoded::new(Full::new(Bytes::from_static(&[0; 100])), &Histories::receiver(), None);
    assert!(block_on(body.frame()).unwrap().is_err());
    assert!(block_on(body.frame()).is_none());
}

/// Trailers do not end a body in the middle of a block.
#[test]
fn trailers_follow_complete_blocks() {
    let block = &blocks(&CHUNKS)[0];
    for (length, is_complete) in [(block.len(), true), (block.len() - 1, false)] {
        let frames = [Frame::data(block.slice(..length)), Frame::trailers(http::HeaderMap::new())].map(Ok);
        let body = StreamBody::new(Chunks(frames.into()));
        let collected = block_on(Decoded::new(body, &Histories::receiver(), None).collect());
        assert_eq!(collected.is_ok(), is_complete);
    }
}

/// Other streams of the thread continue between two blocks of a long body.
#[test]
fn a_long_body_leaves_in_turns() {
    let body = Full::new(Bytes::from(vec![7; 3 * TURN]));
    let mut body = tokio_test::task::spawn(Encoded::new(body, &Histories::sender()));
    let mut turns = Vec::new();
    loop {
        match body.enter(|cx, body| body.poll_frame(cx)) {
            Poll::Ready(Some(frame)) => turns.push(frame.unwrap().is_data()),
            Poll::Ready(None) => break,
            Poll::Pending => {
                assert!(body.is_woken());
                turns.push(false);
            }
        }
    }
    assert_eq!(turns, [true, false, true, false, true, false]);
}
