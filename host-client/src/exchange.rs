//! One attempt to send one request on one HTTP/2 connection.

use h2::{Reason, RecvStream};
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response};
use ops::drain::Tasks;
use tunnel::{Budget, Inbound};

use super::BoxError;
use super::connection::Permit;
use super::counters::Counted;
use super::error::{HostError, InvalidRequest};
use super::host_body::{Guards, HostBody};
use super::request_body::{Kind, RequestBody};
use super::upload::Upload;
use kubeconfig::Address;

/// The resources that an exchange needs in addition to the request.
pub(super) struct Resources<'a> {
    pub(super) permit: Permit,
    pub(super) budget: &'a Budget,
    pub(super) tasks: &'a Tasks,
}

/// Why there is no response.
#[derive(Debug)]
pub(super) enum Failure {
    /// The request was certainly not processed.
    Unprocessed(h2::Error),
    /// HTTP/2 cannot express the request. Nothing was sent.
    Inexpressible(h2::Error),
    /// The connection broke.
    ConnectionLost(h2::Error),
    /// The API server ended only this stream.
    StreamReset(h2::Error),
    /// The body of the request failed.
    Body(BoxError),
}

/// Sends the request, and waits for the head of the response. Dropping this future resets the stream. `body` is
/// consumed only if the stream was opened.
pub(super) async fn exchange(
    resources: Resources<'_>,
    request: Request<()>,
    body: &mut RequestBody,
    counted: &mut Option<Counted>,
) -> Result<Response<HostBody>, Failure> {
    let Resources { mut permit, budget, tasks } = resources;
    let is_head = request.method() == Method::HEAD;
    let without_body = matches!(body.kind(), Kind::Empty | Kind::Spent);
    let opened = permit.handle.send_request(request, without_body);
    let (response, mut sending) = opened.map_err(|error| {
        if error.is_go_away() || error.is_io() {
            permit.retire();
            Failure::Unprocessed(error)
        } else {
            Failure::Inexpressible(error)
        }
    })?;
    let upload = match body.kind() {
        Kind::Empty | Kind::Spent => None,
        Kind::Full(bytes) => {
            // The body is in memory: `h2` shares it, and sends it as the windows open. An error here is also an error
            // of the response, which has more details.
            let _ = sending.send_data(bytes.clone(), true);
            None
        }
        Kind::Stream(_) => body.take_stream().map(|stream| Upload::begin(stream, sending, tasks)),
    };
    let response = match response.await {
        Ok(response) => response,
        // A body that fails resets the stream, and the response then has the error of that reset.
        Err(error) => {
            let of_body = upload.and_then(Upload::into_failure);
            return Err(of_body.map_or_else(|| Failure::of(error, &permit), Failure::Body));
        }
    };
    let counted = counted.take().expect("a request is answered once");
    let held = Guards::new(counted, Some(permit), upload.map(Upload::into_guard));
    Ok(deliver(response, is_head, budget, held))
}

fn deliver(response: Response<RecvStream>, is_head: bool, budget: &Budget, held: Guards) -> Response<HostBody> {
    let length = response.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse().ok()).filter(|_| !is_head);
    response.map(|stream| HostBody::http2(Inbound::new(stream, budget).with_length(length), held))
}

// === impl Failure ===

impl Failure {
    /// The error for the caller if the request is not sent again.
    pub(super) fn into_error(self, address: &Address) -> HostError {
        let address = address.clone();
        match self {
            Self::Unprocessed(source) => HostError::Refused { address, source },
            Self::Inexpressible(error) => InvalidRequest::Http(error.to_string()).into(),
            Self::ConnectionLost(error) | Self::StreamReset(error) => {
                HostError::Broken { address, source: error.into() }
            }
            Self::Body(error) => HostError::Body(error),
        }
    }

    fn of(error: h2::Error, permit: &Permit) -> Self {
        if error.is_go_away() && error.is_remote() {
            // `h2` returns this only for streams above the last stream id of the GOAWAY (RFC 9113 section 6.8). For
            // other streams, the end of the connection is an I/O error.
            permit.retire();
            Self::Unprocessed(error)
        } else if error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM) && error.is_remote() {
            // It counts streams differently. A new connection begins to count from zero.
            permit.retire();
            Self::Unprocessed(error)
        } else if error.is_reset() {
            Self::StreamReset(error)
        } else {
            permit.retire();
            Self::ConnectionLost(error)
        }
    }
}
