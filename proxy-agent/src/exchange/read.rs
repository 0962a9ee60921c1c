//! Reads of the host with the agent's own identity, while a plan is made.
//!
//! A user who may write an object may lack the right to read it. The client does not see what is read here.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use kube_wire::{ResourceRequest, Status};

use super::ApiRequest;
use super::plan::As;
use crate::refusal::Refusal;
use host_client::collect::MAX_OBJECT;
use host_client::{HostBody, empty};

pub(super) const JSON: &str = "application/json";

impl ApiRequest<'_> {
    /// Sends a GET that accepts `media_type`.
    pub(super) async fn read_from_host(
        &self,
        target: &str,
        media_type: &'static str,
    ) -> Result<Response<HostBody>, Refusal> {
        let mut read = self.upstream(Method::GET, target, As::Agent, empty())?;
        read.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(media_type));
        self.send(read).await
    }

    /// Reads the object at a path of the host. `None` if it does not exist. Any other refusal of the host becomes the
    /// response to this request.
    pub(super) async fn object_at(
        &self,
        request: &ResourceRequest<'_>,
        path: &str,
        media_type: &'static str,
    ) -> Result<Option<Bytes>, Refusal> {
        let response = self.read_from_host(path, media_type).await?;
        match response.status() {
            StatusCode::OK => self.collected(response).await.map(Some),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refused(request, response).await),
        }
    }

    /// The host's refusal of a read or a dry run, as the response to this request.
    pub(super) async fn refused(&self, request: &ResourceRequest<'_>, response: Response<HostBody>) -> Refusal {
        let said = self.status(request, &self.mapping, response).await;
        said.unwrap_or_else(|| Status::internal_error("the host's response is not a Status")).into()
    }

    /// The body of a response.
    pub(super) async fn collected(&self, response: Response<HostBody>) -> Result<Bytes, Refusal> {
        self.outside(self.collector().collect(response.into_body(), MAX_OBJECT)).await
    }
}
