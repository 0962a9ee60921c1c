//! `kubectl.kubernetes.io/last-applied-configuration` in an apply.
//!
//! When kubectl applies, the API server itself rewrites the annotation, from the object that it got. Clients see that
//! text in virtual names (`view` in `rewrite`). kubectl then applies the annotation that it has read, as another
//! manager: to own it, not to change it. In virtual names, this would be a change, and so a conflict.

use bytes::Bytes;
use http::Method;
use kube_wire::ResourceRequest;
use memchr::memmem;
use rewrite::name::LAST_APPLIED_ANNOTATION as KEY;
use serde::Deserialize;
use serde_json::Value;

use crate::exchange::api_request::As;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::patch::resolve::{read, shown_text};
use crate::refusal::Refusal;
use host_client::empty;

#[derive(Deserialize)]
struct Annotated {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(rename = "kubectl.kubernetes.io/last-applied-configuration")]
    last_applied: Option<String>,
}

/// The apply with the stored annotation, if its annotation is what the client was shown.
pub(crate) async fn as_stored(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    json: Bytes,
) -> Result<Bytes, Refusal> {
    if request.subresource().is_some() || memmem::find(&json, KEY.as_bytes()).is_none() {
        return Ok(json);
    }
    let Ok(mut apply) = serde_json::from_slice::<Value>(&json) else { return Ok(json) };
    let Some(given) = annotation(&apply).map(str::to_owned) else { return Ok(json) };
    // If there is no object, or it cannot be read, there is nothing to compare with.
    let Ok(live) = read(call, request, upstream::request(&call.api, Method::GET, path, As::Agent, empty())?).await
    else {
        return Ok(json);
    };
    let Some(stored) = annotated(&live)?.filter(|stored| *stored != given) else { return Ok(json) };
    if annotated(&shown_text(call, request, &live)?)?.as_ref() != Some(&given) {
        return Ok(json);
    }
    apply["metadata"]["annotations"][KEY] = stored.into();
    Ok(apply.to_string().into())
}

/// The annotation of a stored object. Nothing else is kept, because the object may be a hundred times as large as the
/// apply.
fn annotated(object: &[u8]) -> Result<Option<String>, Refusal> {
    let Annotated { metadata } =
        serde_json::from_slice(object).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    Ok(metadata.annotations.last_applied)
}

fn annotation(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][KEY].as_str()
}
