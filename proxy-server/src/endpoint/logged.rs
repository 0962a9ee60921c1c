//! The last phase: the body of the response, which tells the record of its request how it ended. A watch ends normally if it
//! breaks between two events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use kube_wire::watch_frames::WatchFrames;
use tracing::debug;

use super::access_log::ResponseEnd;
use super::body::{BodyError, ResponseBody};
use super::record::{Accepted, Record, Refused, Responded};
use super::refusal::Refusal;

/// A body that completes the record of its request.
#[derive(Debug)]
pub(super) struct Logged {
    body: ResponseBody,
    record: Record,
    /// The remaining bytes, if the length is known.
    left: Option<u64>,
    /// `None` unless this is a watch.
    frames: Option<WatchFrames>,
}

/// Turns a refusal into a response, and attaches the record to the response.
#[expect(clippy::unnecessary_wraps, reason = "a service has an error type")]
#[expect(clippy::needless_pass_by_value, reason = "the context is passed by value")]
pub(super) fn end(accepted: Accepted, result: Result<Responded, Box<Refused>>) -> Result<Response<Logged>, Infallible> {
    let (response, record) = match result {
        Ok(Responded { response, record }) => (response, record),
        Err(refused) => {
            let Refused { refusal, mut record } = *refused;
            debug!(%refusal, "refused");
            let status = refusal.status();
            record.refused(&refusal, &status);
            (Refusal::response(&status, accepted.as_ref()), record)
        }
    };
    Ok(Logged::response(response, record))
}

// === impl Logged ===

impl Logged {
    /// Attaches the record to the response.
    fn response(mut response: Response<ResponseBody>, mut record: Record) -> Response<Self> {
        record.answered(response.status(), response.headers_mut());
        let frames = if record.is_watch { WatchFrames::of(&response) } else { None };
        response.map(|body| {
            let left = body.size_hint().exact();
            Self { body, record, left, frames }
        })
    }
}

impl Logged {
    /// Completes if the process stops, and this is a watch that is between two events.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match (&mut self.record.watch_end, &self.frames) {
            (Some(end), Some(frames)) if frames.is_between() => end.as_mut().poll(cx),
            _ => Poll::Pending,
        }
    }
}

impl Body for Logged {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let frame = match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Pending => {
                ready!(this.poll_end(cx));
                None
            }
            Poll::Ready(frame) => frame,
        };
        if let Some(entry) = &mut this.record.entry {
            match &frame {
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                    entry.bytes += bytes;
                    this.left = this.left.map(|left| left.saturating_sub(bytes));
                }
                Some(Err(error)) => entry.broke(error),
                None => entry.end = ResponseEnd::Whole,
            }
        }
        if let Some(frames) = &mut this.frames {
            match &frame {
                Some(Ok(frame)) => frames.push(frame.data_ref().map_or(&[], |bytes| bytes)),
                Some(Err(_)) if frames.is_between() => return Poll::Ready(None),
                Some(Err(_)) | None => {}
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        // hyper does not poll a body of known length for its end.
        let is_whole = self.left == Some(0) || self.body.is_end_stream();
        if let Some(entry) = self.record.entry.as_mut().filter(|entry| is_whole && entry.end == ResponseEnd::Left) {
            entry.end = ResponseEnd::Whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::super::access_log::Entry;
    use super::*;

    #[tokio::test]
    async fn bytes_are_counted_to_the_end() {
        let running = super::super::idle::Requests::new().begin();
        let mut record = Record::begin(&Request::new(()), running);
        record.entry = Some(Box::new(Entry::new(&Request::new(()), tokio::time::Instant::now())));
        let body = ResponseBody::Whole(Some(Bytes::from_static(b"answer")));
        let mut logged = end(None, Ok(Responded { response: Response::new(body), record })).unwrap().into_body();
        let frame = std::future::poll_fn(|cx| Pin::new(&mut logged).poll_frame(cx)).await;
        assert!(frame.is_some_and(|frame| frame.is_ok()));
        // hyper does not poll again after the known length.
        let state = logged.record.entry.as_ref().map(|entry| (entry.status, entry.bytes));
        assert_eq!((state, logged.left), (Some((200, 6)), Some(0)));
    }
}
