//! What follows the creation of a Namespace.

use http::Response;
use kube_wire::media::Encoding;
use rewrite::protobuf::ObjectMetadata;
use serde_json::{Value, json};

use crate::exchange::call::Call;
use crate::exchange::classes::namespaces::secured::warn_of_pod_security;
use crate::refusal::Refusal;
use crate::translate::{Upstream, encoding};
use host_client::HostBody;
use host_client::collect::MAX_OBJECT;

/// Creates the initial objects of a new namespace before the client gets the response.
pub(crate) async fn post_create(call: &Call<'_>, response: Response<HostBody>) -> Result<Response<Upstream>, Refusal> {
    if !response.status().is_success() {
        return Ok(response.map(Upstream::Stream));
    }
    let (mut parts, body) = response.into_parts();
    let body = call.answer_collector().collect(body, MAX_OBJECT).await?;
    let created = if encoding(&parts.headers) == Some(Encoding::Protobuf) {
        let ObjectMetadata { name, uid, resource_version, labels, .. } =
            ObjectMetadata::of(&body).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        let metadata = json!({"name": name, "uid": uid, "resourceVersion": resource_version, "labels": labels});
        json!({"metadata": metadata})
    } else {
        let shown: Value = serde_json::from_slice(&body).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        // A Table has the metadata of the object in its only row.
        if shown["kind"] == "Table" { shown["rows"][0]["object"].clone() } else { shown }
    };
    call.services.provisioner.post_create(&created).await;
    warn_of_pod_security(call, &created["metadata"]["labels"], &mut parts.headers);
    Ok(Response::from_parts(parts, Upstream::Whole(body)))
}
