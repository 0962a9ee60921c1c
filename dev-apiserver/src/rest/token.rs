//! The subresource `token` of service accounts.

use http::{Response, StatusCode};
use jiff::Timestamp;
use kube_wire::Status;
use kube_wire::gvr::GroupKind;
use kube_wire::status::FieldError;
use serde_json::{Value, json};

use super::decode;
use super::read::find;
use super::request::ApiRequest;
use crate::auth::tokens::ISSUER;
use crate::body::RequestBody;
use crate::kinds::{self, Kind};
use crate::object;
use crate::response::{self, Body};

/// The minimum lifetime, in seconds (`ValidateTokenRequest` in `pkg/apis/authentication/validation`).
const MIN_SECONDS: i64 = 600;
const DEFAULT_SECONDS: i64 = 3600;
const MAX_SECONDS: i64 = 1 << 32;

pub(super) async fn issue(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    let mut token_request = decode::object(request, body).await?;
    let spec = &token_request["spec"];
    let lifetime = spec["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);
    if !(MIN_SECONDS..=MAX_SECONDS).contains(&lifetime) {
        let kind = GroupKind { group: "authentication.k8s.io", kind: "TokenRequest" };
        let why = if lifetime < MIN_SECONDS {
            "may not specify a duration less than 10 minutes"
        } else {
            "may not specify a duration larger than 2^32 seconds"
        };
        let error = FieldError::invalid("spec.expirationSeconds", lifetime.to_string(), why);
        return Err(Status::invalid(kind, "", &[error]));
    }
    let mut audiences = object::text_list(&spec["audiences"]);
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    let (account, bound) = request.api.store.read(|state| {
        let account = std::sync::Arc::clone(find(state, request)?);
        let bound = bound_object(&spec["boundObjectRef"], |kind, name| {
            let namespace = if kind.namespaced { object::namespace(&account) } else { "" };
            state.get(kind, namespace, name).map(|object| Value::clone(object))
        })?;
        Ok::<_, Status>((account, bound))
    })?;
    let bound = bound.as_ref().map(|(kind, object)| (*kind, object));
    let seconds = u64::try_from(lifetime).unwrap_or_default();
    let issued = request.api.tokens.issue(&account, audiences.clone(), seconds, bound)?;
    let expires = i64::try_from(issued.expires).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    token_request["apiVersion"] = "authentication.k8s.io/v1".into();
    token_request["kind"] = "TokenRequest".into();
    object::metadata(&mut token_request).extend([
        ("name".to_owned(), object::name(&account).into()),
        ("namespace".to_owned(), object::namespace(&account).into()),
        ("creationTimestamp".to_owned(), object::now().into()),
    ]);
    let spec = object::map(&mut token_request, "spec");
    spec.insert("audiences".to_owned(), audiences.into());
    spec.insert("expirationSeconds".to_owned(), lifetime.into());
    token_request["status"] = json!({
        "token": issued.token,
        "expirationTimestamp": expires.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    });
    Ok(response::json(StatusCode::CREATED, &token_request))
}

/// The object whose deletion invalidates the token.
fn bound_object(
    reference: &Value,
    get: impl Fn(&'static Kind, &str) -> Option<Value>,
) -> Result<Option<(&'static Kind, Value)>, Status> {
    if !reference.is_object() {
        return Ok(None);
    }
    let kind = match reference["kind"].as_str() {
        Some("Pod") => kinds::of("", "pods"),
        Some("Secret") => kinds::of("", "secrets"),
        Some("Node") => kinds::of("", "nodes"),
        _ => return Err(Status::bad_request("cannot bind token to object of type other than Pod, Secret or Node")),
    };
    let name = reference["name"].as_str().unwrap_or_default();
    let object = get(kind, name).ok_or_else(|| Status::not_found(kind.group_resource(), name))?;
    if reference["uid"].as_str().is_some_and(|uid| !uid.is_empty() && uid != object::uid(&object)) {
        return Err(Status::conflict(
            kind.group_resource(),
            name,
            "the UID in the bound object reference does not match",
        ));
    }
    Ok(Some((kind, object)))
}
