//! `kubectl.kubernetes.io/last-applied-configuration` in an apply.
//!
//! The API server itself rewrites the annotation when kubectl applies, from the object as it got it, and clients are
//! shown that text in virtual names (`view` in `rewrite`). kubectl then applies the annotation as it read it, as another
//! manager: to own it, not to change it. Sent in virtual names that would be a change, and a conflict.

use bytes::Bytes;
use http::Method;
use kube_wire::ResourceRequest;
use memchr::memmem;
use rewrite::name::LAST_APPLIED_ANNOTATION as KEY;
use serde_json::Value;

use super::super::Asked;
use super::super::plan::As;
use super::resolve::{read, shown};
use crate::host::empty;
use crate::refusal::Refusal;

/// The apply with the annotation as it is stored, if it is what the client was shown of it.
pub(super) async fn as_stored(
    asked: &Asked<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    json: Bytes,
) -> Result<Bytes, Refusal> {
    if request.subresource().is_some() || memmem::find(&json, KEY.as_bytes()).is_none() {
        return Ok(json);
    }
    let Ok(mut apply) = serde_json::from_slice::<Value>(&json) else { return Ok(json) };
    let Some(given) = annotation(&apply).map(str::to_owned) else { return Ok(json) };
    // Whoever may not read it, or if there is nothing yet: then there is nothing to compare with.
    let Ok(live) = read(asked, request, asked.upstream(Method::GET, path, As::Agent, empty())?).await else {
        return Ok(json);
    };
    let stored = serde_json::from_slice::<Value>(&live).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let Some(stored) = annotation(&stored).filter(|stored| *stored != given) else { return Ok(json) };
    if annotation(&shown(asked, request, &live)?) != Some(&*given) {
        return Ok(json);
    }
    apply["metadata"]["annotations"][KEY] = stored.into();
    Ok(apply.to_string().into())
}

fn annotation(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][KEY].as_str()
}
