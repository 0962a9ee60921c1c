//! Reads responses of limited length into memory.

use bytes::{Bytes, BytesMut};
use http::header::RETRY_AFTER;
use http::{HeaderMap, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use kube_wire::Status;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::error::ApiError;
use super::object::parse;
use super::position::Position;
use crate::HostBody;

/// The maximum length of a refusal. A longer one is truncated.
const MAX_REFUSAL: usize = 64 * 1024;

/// The maximum length of a message that is not a Status, such as an HTML page of a load balancer.
const MAX_MESSAGE: usize = 1024;

/// One page of a list.
#[derive(Debug)]
pub struct Page<T> {
    /// The objects, in the order of the API server.
    pub items: Vec<T>,
    /// The resource version of the list, from which a watch can continue.
    pub resource_version: String,
    /// The position of the next page, if there is one.
    pub next: Option<Position>,
}

#[derive(Deserialize)]
struct ListForm<T> {
    metadata: ListMeta,
    // Go writes an empty list of some types as null.
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

// === impl Page ===

impl<T: DeserializeOwned> Page<T> {
    /// `limit` is the number of requested objects.
    pub(super) fn read(bytes: &[u8], limit: u32) -> Result<Self, ApiError> {
        let read: Result<ListForm<T>, _> = serde_json::from_slice(bytes);
        let list = read.or_else(|_| Self::read_each(bytes)).map_err(ApiError::Json)?;
        let token = list.metadata.next.filter(|token| !token.is_empty());
        Ok(Self {
            items: list.items.unwrap_or_default(),
            resource_version: list.metadata.resource_version,
            next: token.map(|token| Position::after(token, limit)),
        })
    }

    /// Reads items that cannot be parsed in the usual way, because their managed fields are nested too deeply.
    fn read_each(bytes: &[u8]) -> Result<ListForm<T>, serde_json::Error> {
        let ListForm { metadata, items } = serde_json::from_slice::<ListForm<Box<RawValue>>>(bytes)?;
        let items = items.map(|items| items.iter().map(|item| parse(item.get())).collect());
        Ok(ListForm { metadata, items: items.transpose()? })
    }
}

/// The whole body, if it has at most `limit` bytes.
pub(super) async fn read(mut body: HostBody, limit: usize) -> Result<Bytes, ApiError> {
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if expected > limit {
        return Err(ApiError::TooLarge { limit });
    }
    let mut bytes = BytesMut::with_capacity(expected);
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if bytes.len() + data.len() > limit {
                return Err(ApiError::TooLarge { limit });
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes.freeze())
}

/// The Status of an unsuccessful response.
pub(super) async fn refusal(response: Response<HostBody>) -> ApiError {
    let (parts, body) = response.into_parts();
    let code = parts.status.as_u16();
    let mut status = match read(body, MAX_REFUSAL).await {
        Ok(bytes) => {
            Status::from_json(&bytes).unwrap_or_else(|_| Status { message: shortened(&bytes), ..Status::default() })
        }
        Err(ApiError::TooLarge { .. }) => Status::default(),
        Err(error) => return error,
    };
    if status.code == 0 {
        status.code = code;
    }
    if let (None, Some(seconds)) = (status.retry_after(), retry_after(&parts.headers)) {
        status = status.with_retry_after(seconds);
    }
    ApiError::Status(Box::new(status))
}

fn shortened(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_MESSAGE)]);
    text.trim().to_owned()
}

/// The value in seconds. The API server never sends the form with a date.
fn retry_after(headers: &HeaderMap) -> Option<u32> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()
}
