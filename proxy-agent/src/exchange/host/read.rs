//! Reads of the host with the agent's own identity, while a plan is made.
//!
//! A user who may write an object may lack the right to read it. The client does not see what is read here.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use kube_wire::{ResourceRequest, Status};

use crate::exchange::api_request::As;
use crate::exchange::call::Call;
use crate::exchange::host::sample::send;
use crate::exchange::host::status::status_of;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::refusal::Refusal;
use host_client::collect::MAX_OBJECT;
use host_client::{HostBody, empty};

pub(crate) const JSON: &str = "application/json";

/// Sends a GET that accepts `media_type`.
pub(crate) async fn read_from_host(
    call: &Call<'_>,
    target: &str,
    media_type: &'static str,
) -> Result<Response<HostBody>, Refusal> {
    let mut read = upstream::request(&call.api, Method::GET, target, As::Agent, empty())?;
    read.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(media_type));
    send(call, read).await
}

/// Reads the object at a path of the host. `None` if it does not exist. Any other refusal of the host becomes the
/// response to this request.
pub(crate) async fn object_at(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    media_type: &'static str,
) -> Result<Option<Bytes>, Refusal> {
    let response = read_from_host(call, path, media_type).await?;
    match response.status() {
        StatusCode::OK => collected(call, response).await.map(Some),
        StatusCode::NOT_FOUND => Ok(None),
        _ => Err(refused(call, request, response).await),
    }
}

/// The host's refusal of a read or a dry run, as the response to this request.
pub(crate) async fn refused(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    response: Response<HostBody>,
) -> Refusal {
    let status = status_of(call, request, &call.api.mapping, response).await;
    status.unwrap_or_else(|| Status::internal_error("the host's response is not a Status")).into()
}

/// The body of a response.
pub(crate) async fn collected(call: &Call<'_>, response: Response<HostBody>) -> Result<Bytes, Refusal> {
    call.outside(call.collector().collect(response.into_body(), MAX_OBJECT)).await
}
