//! Request bodies in host names.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::tunnel::{Inbound, Share};
use bytes::Bytes;
use kube_wire::Status;
use tokio::time::timeout;

use crate::exchange::api_request::BodyUse;
use crate::refusal::{Exhausted, Refusal};
use crate::translate::{MAX_FORGOTTEN, MAX_REQUEST};
use host_client::collect::{CollectError, collect_charged, drain};
use host_client::{RequestBody, empty, full, stream};

/// The body of a request, as the client sends it.
pub(crate) enum Body {
    /// In one piece. It is mapped, perhaps more than once.
    Whole(Bytes),
    /// For the server of a pod or a service. It is sent unchanged, and only once.
    Stream(Mutex<Option<Inbound>>),
}

/// The time that a client has to send a mapped body. An API server limits the whole request to the same time
/// (`RequestTimeout` in apiserver's `pkg/server/config.go`).
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

impl Body {
    /// Collects a mapped body, and charges it to the cluster's share. The caller is authorised.
    pub(crate) async fn receive(inbound: Inbound, body_use: BodyUse, share: &Share) -> Result<Self, Refusal> {
        match body_use {
            BodyUse::Ignored => Ok(Self::Whole(Bytes::new())),
            BodyUse::Passed => Ok(Self::Stream(Mutex::new(Some(inbound)))),
            BodyUse::Mapped => match timeout(BODY_TIMEOUT, Self::collected(inbound, share)).await {
                Ok(collected) => collected,
                // `WithTimeoutForNonLongRunningRequests` in apiserver's `pkg/server/filters/timeout.go`.
                Err(_) => Err(Status::timeout("request did not complete within the allotted timeout", 0).into()),
            },
        }
    }

    async fn collected(mut inbound: Inbound, share: &Share) -> Result<Self, Refusal> {
        match collect_charged(&mut inbound, MAX_REQUEST, share).await {
            Ok(bytes) => Ok(Self::Whole(bytes)),
            Err(CollectError::Exhausted) => Err(Exhausted::Memory.into()),
            Err(CollectError::TooLarge(limit)) => {
                drain(&mut inbound, MAX_FORGOTTEN).await;
                Err(Status::request_entity_too_large(&format!("limit is {limit}")).into())
            }
            Err(CollectError::Broken(_)) => Err(Status::bad_request("the request body ended early").into()),
        }
    }

    /// The bytes. A stream returns none.
    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Whole(bytes) => bytes.clone(),
            Self::Stream(_) => Bytes::new(),
        }
    }

    /// The number of bytes. That of a stream is not known, and counts as 0.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Stream(_) => 0,
        }
    }

    /// Whether it can be sent again.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_))
    }

    /// The unchanged body.
    pub(crate) fn take(&self) -> RequestBody {
        match self {
            Self::Whole(bytes) => full(bytes.clone()),
            Self::Stream(inbound) => {
                let inbound = inbound.lock().unwrap_or_else(PoisonError::into_inner).take();
                inbound.map_or_else(empty, stream)
            }
        }
    }
}
