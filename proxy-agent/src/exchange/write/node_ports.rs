//! Node ports of Services. All virtual clusters of a host share its node ports, and a control plane may write the same
//! Service to many of them.
//!
//! The agent first sends a write with the requested ports. If the host refuses a port because another Service has it,
//! the agent repeats the write without this port, so that the host chooses one. An annotation records the requested
//! port ([`rewrite::node_ports`]), which clients see from then on. Later writes with the same requested port get the
//! port of the host. If a Service of the same virtual cluster has the requested port, the write is refused, as by any
//! API server.

mod held;
mod json;
mod protobuf;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use kube_wire::media::Encoding;
use kube_wire::{ResourceRequest, Status, Verb};
use serde_json::Value;

use crate::exchange::attempts::{Cause, End};
use crate::exchange::call::Call;
use crate::exchange::findings::warning;
use crate::exchange::host::parsed::tree;
use crate::exchange::host::read::{JSON, object_at};
use crate::exchange::undecided::Undecided;
use crate::exchange::write::node_ports::held::shows_node_port;
use crate::exchange::write::object::Object;
use crate::refusal::Refusal;
use crate::translate::{Upstream, encoding};
use host_client::HostBody;
use host_client::collect::MAX_OBJECT;

use crate::exchange::ports::{Form, Ports};

/// `ErrAllocated` in kube-apiserver's `registry/core/service/portallocator/allocator.go`.
const TAKEN: &str = "provided port is already allocated";

/// The text before the value in a cause (`field.Invalid` of apimachinery).
const INVALID: &str = "Invalid value: ";

/// The text before the port if the port for health checks is taken (`allocHealthCheckNodePort` in kube-apiserver's
/// `registry/core/service/storage/alloc.go`). The status is 500.
const HEALTH_CHECK: &str = "failed to allocate requested HealthCheck NodePort ";

/// Whether a request writes the node ports of a Service, or the annotations about them.
pub(crate) fn concerns(request: &ResourceRequest<'_>) -> bool {
    (request.group(), request.resource()) == ("", "services")
        && matches!(request.subresource(), None | Some("status"))
        && matches!(request.verb(), Verb::Create | Verb::Update | Verb::Patch)
}

/// Reads the current ports of the Service at `path` before it is written.
pub(crate) async fn learn_node_ports(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
) -> Result<(), Refusal> {
    let live = if request.verb() == Verb::Create { None } else { live_service(call, request, path).await? };
    let ports = Ports::new(live.as_ref(), call.attempts.taken_ports().clone(), request.subresource().is_some());
    *call.ports() = Some(ports);
    Ok(())
}

async fn live_service(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
) -> Result<Option<Value>, Refusal> {
    let suffix = request.subresource().map(|name| format!("/{name}")).unwrap_or_default();
    let path = path.strip_suffix(&suffix).unwrap_or(path);
    object_at(call, request, path, JSON).await?.as_ref().map(|body| tree(body)).transpose()
}

/// A body in JSON with the node ports for the host.
pub(crate) fn with_node_ports(call: &Undecided<'_>, form: Form, json: &Bytes) -> Bytes {
    let mut known = call.ports();
    let settled = known.as_mut().and_then(|ports| json::settled(ports, form, json));
    settled.unwrap_or_else(|| json.clone())
}

/// The same for an object in the encoding of the client. `None` if it does not change.
pub(crate) fn object_with_node_ports(call: &Undecided<'_>, object: &Object) -> Option<Object> {
    let mut known = call.ports();
    let ports = known.as_mut()?;
    match object {
        Object::Json(json) => json::settled(ports, Form::Whole, json).map(Object::Json),
        Object::Protobuf(body) => protobuf::settled(ports, body).map(Object::Protobuf),
    }
}

/// The host's response to a write of a Service.
pub(crate) async fn node_ports_given(call: &Call<'_>, response: Response<HostBody>) -> Result<End<Upstream>, Refusal> {
    let status = response.status();
    let is_refused = matches!(status, StatusCode::UNPROCESSABLE_ENTITY | StatusCode::INTERNAL_SERVER_ERROR);
    let replaced = call.attempts.taken_ports();
    let is_looked_at = if is_refused { call.services.replaces_node_ports } else { !replaced.is_empty() };
    if !is_looked_at {
        return Ok(ControlFlow::Break(response.map(Upstream::Stream)));
    }
    let (mut parts, body) = response.into_parts();
    let body = call.answer_collector().collect(body, MAX_OBJECT).await?;
    if is_refused {
        if let Some(port) = refused(encoding(&parts.headers), &body)
            && call.attempts.allow(Cause::TakenPort(port))
            && !shows_node_port(call, port).await?
        {
            return Ok(ControlFlow::Continue(Cause::TakenPort(port)));
        }
    } else if status.is_success() {
        for text in warnings(replaced, encoding(&parts.headers), &body) {
            parts.headers.append(header::WARNING, text);
        }
    }
    Ok(ControlFlow::Break(Response::from_parts(parts, Upstream::Whole(body))))
}

/// The port that the host has refused because it is taken.
fn refused(encoding: Option<Encoding>, body: &Bytes) -> Option<u16> {
    let status = match encoding? {
        Encoding::Json => Status::from_json(body).ok()?,
        Encoding::Protobuf => Status::from_protobuf(body).ok()?,
        Encoding::Yaml | Encoding::Cbor => return None,
    };
    let port = |text: &str| text.split_once(": ").filter(|(_, why)| *why == TAKEN)?.0.trim_matches('"').parse().ok();
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut named =
        causes.filter(|cause| cause.field.starts_with("spec.ports[") && cause.field.ends_with("].nodePort"));
    let of_port = named.find_map(|cause| port(cause.message.strip_prefix(INVALID)?));
    of_port.or_else(|| port(status.message.split_once(HEALTH_CHECK)?.1))
}

/// The warnings about ports that were replaced.
fn warnings(replaced: &BTreeSet<u16>, encoding: Option<Encoding>, service: &[u8]) -> Vec<HeaderValue> {
    let live = match encoding {
        Some(Encoding::Protobuf) => protobuf::read(service),
        _ => serde_json::from_slice::<Value>(service).ok(),
    };
    let ports = Ports::new(live.as_ref(), BTreeSet::new(), false);
    let warn = |requested: &u16| {
        let given: Vec<String> = ports.given_for(*requested).map(|port| port.to_string()).collect();
        // A Table or metadata alone do not contain the ports.
        let given = if given.is_empty() { "another one".to_owned() } else { given.join(" and ") };
        warning(&format!("node port {requested} is in use on the host cluster: its nodes listen on {given} instead"))
    };
    replaced.iter().filter_map(warn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_wire::gvr::GroupKind;
    use kube_wire::status::{CauseType, FieldError};
    use serde_json::json;

    #[test]
    fn only_a_taken_port_is_replaced() {
        let invalid = |field: &str, value: &str, detail: &str| {
            let (cause, field, detail) = (CauseType::Invalid, field.to_owned(), detail.to_owned());
            let error = FieldError { cause, field, value: Some(value.to_owned()), detail };
            Status::invalid(GroupKind { group: "", kind: "Service" }, "a", &[error])
        };
        let health = "failed to allocate requested HealthCheck NodePort 30090: provided port is already allocated";
        for (status, port) in [
            (invalid("spec.ports[1].nodePort", "30080", TAKEN), Some(30080)),
            (invalid("spec.ports[1].nodePort", "80", "provided port is not in the valid range"), None),
            (invalid("spec.ports[1].targetPort", "30080", TAKEN), None),
            (Status::internal_error(health), Some(30090)),
            (Status::internal_error("failed to allocate a nodePort: range is full"), None),
        ] {
            assert_eq!(refused(Some(Encoding::Json), &status.to_json().into()), port, "{}", status.message);
            assert_eq!(refused(Some(Encoding::Protobuf), &status.to_protobuf().into()), port);
        }
        assert_eq!(refused(Some(Encoding::Json), &Bytes::from("{}")), None);
        assert_eq!(refused(None, &Bytes::new()), None);
    }

    #[test]
    fn a_warning_says_which_port_it_is() {
        let service = json!({
            "metadata": {"annotations": {"atoll.dev/asked-node-port.80.tcp": "30080"}},
            "spec": {"ports": [{"port": 80, "protocol": "TCP", "nodePort": 31234}]},
        });
        let json = Some(Encoding::Json);
        let text_for = |body: &Value| {
            warnings(&BTreeSet::from([30080]), json, body.to_string().as_bytes())[0].to_str().unwrap().to_owned()
        };
        assert!(
            text_for(&service).contains("30080 is in use") && text_for(&service).contains("listen on 31234 instead")
        );
        assert!(text_for(&json!({"kind": "Table"})).contains("listen on another one instead"));
    }
}
