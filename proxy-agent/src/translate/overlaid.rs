//! Replaces pointers with stored overlays, before anything else reads the host's response.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use rewrite::pointer::{Piece, Pointers, StoredId};

use host_client::{HostBody, HostBodyError};

/// Reads an overlay as the value of an annotation, with its quotes.
pub(crate) type Read = Box<dyn Fn(StoredId) -> Reading + Send>;

pub(crate) type Reading = Pin<Box<dyn Future<Output = Result<Bytes, HostBodyError>> + Send>>;

/// A body of the host, with overlays inserted.
pub(crate) struct Overlaid<B = HostBody> {
    body: B,
    /// `None` if the body has no overlays.
    places: Option<Places>,
}

struct Places {
    pointers: Pointers,
    read: Read,
    pieces: VecDeque<Piece>,
    reading: Option<Reading>,
    ended: bool,
}

// === impl Overlaid ===

impl<B> Overlaid<B> {
    /// The unchanged body.
    pub(crate) fn plain(body: B) -> Self {
        Self { body, places: None }
    }

    /// The body in which the results of `read` replace the pointers.
    pub(crate) fn new(body: B, pointers: Pointers, read: Read) -> Self {
        let places = Places { pointers, read, pieces: VecDeque::new(), reading: None, ended: false };
        Self { body, places: Some(places) }
    }

    /// The body as the host sends it.
    pub(crate) fn into_inner(self) -> B {
        self.body
    }
}

impl<B: Body<Data = Bytes, Error = HostBodyError> + Unpin> Body for Overlaid<B> {
    type Data = Bytes;
    type Error = HostBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HostBodyError>>> {
        let Self { body, places } = self.get_mut();
        let Some(places) = places else { return Pin::new(body).poll_frame(cx) };
        loop {
            if let Some(reading) = &mut places.reading {
                let read = ready!(reading.as_mut().poll(cx));
                places.reading = None;
                return Poll::Ready(Some(read.map(Frame::data)));
            }
            match places.pieces.pop_front() {
                Some(Piece::Text(text)) => return Poll::Ready(Some(Ok(Frame::data(text)))),
                Some(Piece::Pointer(id)) => {
                    places.reading = Some((places.read)(id));
                    continue;
                }
                None if places.ended => return Poll::Ready(None),
                None => {}
            }
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let Ok(chunk) = frame.into_data() else { continue };
                    let pieces = &mut places.pieces;
                    places.pointers.push(&chunk, |piece| pieces.push_back(piece));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    places.ended = true;
                    let rest = places.pointers.finish();
                    if !rest.is_empty() {
                        places.pieces.push_back(Piece::Text(rest));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    /// The chunks that the host sends.
    struct Chunks(VecDeque<Bytes>);

    impl Body for Chunks {
        type Data = Bytes;
        type Error = HostBodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, HostBodyError>>> {
            Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
        }
    }

    #[tokio::test]
    async fn overlays_come_in_place() {
        let id = StoredId::new(7);
        let text = format!("{{\"overlay.atoll.dev/ke\":\"stored:{id}\"}}\n");
        for cut in 0..text.len() {
            let chunks = [Bytes::from(text[..cut].to_owned()), Bytes::from(text[cut..].to_owned())];
            let read: Read = Box::new(|id| Box::pin(async move { Ok(Bytes::from(format!("\"<{id}>\""))) }));
            let body = Overlaid::new(Chunks(chunks.into()), Pointers::of(&"ke".parse().unwrap()), read);
            let shown = body.collect().await.unwrap().to_bytes();
            assert_eq!(shown, format!("{{\"overlay.atoll.dev/ke\":\"<{id}>\"}}\n"));
        }
    }
}
