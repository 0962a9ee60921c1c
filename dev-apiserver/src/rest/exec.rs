//! `kubectl exec` and `attach`, over WebSocket (KEP-4006): the request and the handshake. `simulation` has the results of
//! commands, and `stream` sends them and echoes the input.

mod channel;
mod simulation;
mod stream;

use http::header::{CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use kube_wire::Status;
use kube_wire::query::parse_bool;

use super::log::container;
use super::read::find;
use super::request::ApiRequest;
use crate::auth::rbac;
use crate::body::RequestBody;
use crate::response::Body;
use crate::websocket::accept;
use simulation::simulate;

/// The supported subprotocols, in order of preference. Only version 5 can close the input.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

pub(super) fn exec(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    // A WebSocket starts with a GET. Since 1.35, kube-apiserver requires the verb `create` for it, too.
    let attributes = request.attributes("create");
    let pod = request.api.store.read(|state| {
        if !rbac::allows(state, request.user, &attributes) {
            return Err(attributes.forbidden(request.user));
        }
        find(state, request).cloned()
    })?;
    let query = request.query;
    let option = |key: &str| query.first(key).ok().flatten().map(std::borrow::Cow::into_owned);
    let container = container(&pod, option("container").as_deref())?;
    if pod["status"]["phase"] != "Running" {
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        let message = format!("cannot exec into a container in a completed or pending pod; current phase is {phase}");
        return Err(Status::bad_request(message));
    }
    let command: Vec<String> = query.all("command").filter_map(Result::ok).map(std::borrow::Cow::into_owned).collect();
    let has_input = option("stdin").is_some_and(|value| parse_bool(&value));
    let is_terminal = option("tty").is_some_and(|value| parse_bool(&value));
    let simulation = simulate(&pod, &container, &command, has_input, is_terminal);
    let Switched { response, upgrade } = switch(request, body)?;
    let tasks = request.api.tasks.clone();
    request.api.tasks.spawn("exec", async move {
        tokio::select! {
            () = tasks.cancelled() => {}
            outcome = stream::run(upgrade, simulation) => if let Err(error) = outcome {
                tracing::debug!(%error, "exec failed");
            }
        }
    });
    Ok(response)
}

/// A request that switches protocols.
struct Switched {
    /// The response 101.
    response: Response<Body>,
    /// The connection after it.
    upgrade: OnUpgrade,
}

fn switch(request: &ApiRequest<'_>, body: RequestBody) -> Result<Switched, Status> {
    let is_websocket = request.header(UPGRADE).is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
    let key = request.header(SEC_WEBSOCKET_KEY);
    let (true, Some(key), Some(upgrade)) = (is_websocket, key, body.upgrade()) else {
        return Err(Status::bad_request("dev-apiserver supports exec and attach only over WebSocket"));
    };
    let offered = request.header(SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
    let protocol = PROTOCOLS.into_iter().find(|known| offered.split(',').any(|one| one.trim() == *known));
    let Some(protocol) = protocol else {
        return Err(Status::bad_request(format!("the client must offer one of the subprotocols {PROTOCOLS:?}")));
    };
    let mut response = Response::new(Body::Whole(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    set(UPGRADE, "websocket");
    set(CONNECTION, "Upgrade");
    set(SEC_WEBSOCKET_ACCEPT, &accept(key));
    set(SEC_WEBSOCKET_PROTOCOL, protocol);
    Ok(Switched { response, upgrade })
}
