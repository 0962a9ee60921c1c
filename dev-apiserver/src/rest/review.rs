//! Reviews: TokenReview, SubjectAccessReview and its variants, SelfSubjectRulesReview, SelfSubjectReview.

use std::collections::BTreeMap;

use http::{Response, StatusCode};
use kube_wire::Status;
use serde_json::{Value, json};

use super::decode;
use super::request::ApiRequest;
use crate::auth::rbac::{self, PolicyRule, RequestAttributes};
use crate::auth::tokens::Tokens;
use crate::auth::{MASTERS, User};
use crate::body::RequestBody;
use crate::object;
use crate::response::{self, Body};
use crate::store::Store;

pub(super) async fn review(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    let (kind, store) = (request.kind, &*request.api.store);
    let mut review = decode::object(request, body).await?;
    review["apiVersion"] = kind.api_version().into();
    review["kind"] = kind.kind.into();
    object::default(&mut review, "metadata", json!({}));
    if kind.resource == "selfsubjectreviews" {
        object::metadata(&mut review).insert("creationTimestamp".to_owned(), object::now().into());
    }
    let spec = review["spec"].clone();
    let status = match kind.resource {
        "tokenreviews" => token_review(&request.api.tokens, &spec),
        "selfsubjectreviews" => json!({"userInfo": request.user}),
        "selfsubjectaccessreviews" => access_review(store, request.user, &spec)?,
        "selfsubjectrulesreviews" => rules_review(store, request.user, &spec)?,
        _ => {
            let namespace = request.namespace();
            let requested = spec["resourceAttributes"]["namespace"].as_str();
            if namespace.is_some() && requested != namespace {
                return Err(Status::bad_request("spec.resourceAttributes.namespace must match metadata.namespace"));
            }
            access_review(store, &user_of(&spec)?, &spec)?
        }
    };
    review["status"] = status;
    object::drop_nulls(&mut review);
    Ok(response::json(StatusCode::CREATED, &review))
}

fn token_review(tokens: &Tokens, spec: &Value) -> Value {
    let token = spec["token"].as_str().unwrap_or_default();
    match tokens.review(token, &object::text_list(&spec["audiences"])) {
        Some((user, audiences)) => json!({"authenticated": true, "user": user, "audiences": audiences}),
        None => json!({"user": {}, "error": "invalid bearer token"}),
    }
}

fn access_review(store: &Store, user: &User, spec: &Value) -> Result<Value, Status> {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let texts: Vec<String>;
    let attributes = match (resource.is_object(), path.is_object()) {
        (true, false) => {
            texts = ["verb", "group", "resource", "subresource", "namespace", "name"]
                .map(|field| text(&resource[field]))
                .to_vec();
            let given = |index: usize| Some(texts[index].as_str()).filter(|text| !text.is_empty());
            RequestAttributes::Resource {
                verb: &texts[0],
                group: &texts[1],
                resource: &texts[2],
                subresource: given(3),
                namespace: given(4),
                name: given(5),
            }
        }
        (false, true) => {
            texts = ["verb", "path"].map(|field| text(&path[field])).to_vec();
            RequestAttributes::Path { verb: &texts[0], path: &texts[1] }
        }
        _ => {
            let message = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            return Err(Status::bad_request(message));
        }
    };
    let reason = store.read(|state| rbac::reason(state, user, &attributes));
    Ok(match reason {
        Some(reason) if reason.is_empty() => json!({"allowed": true}),
        Some(reason) => json!({"allowed": true, "reason": reason}),
        None => json!({"allowed": false}),
    })
}

fn rules_review(store: &Store, user: &User, spec: &Value) -> Result<Value, Status> {
    let namespace = spec["namespace"].as_str().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.ok_or_else(|| Status::bad_request("no namespace on request"))?;
    let mut rules = store.read(|state| rbac::rules(state, user, Some(namespace)));
    if user.is_in(MASTERS) {
        // The group is authorized without rules.
        let all = || vec!["*".to_owned()];
        rules.push(PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() });
        rules.push(PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() });
    }
    let (paths, resources): (Vec<_>, Vec<_>) = rules.into_iter().partition(|rule| !rule.non_resource_urls.is_empty());
    Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
}

/// The user of a SubjectAccessReview.
fn user_of(spec: &Value) -> Result<User, Status> {
    let name = spec["user"].as_str().unwrap_or_default();
    let groups = object::text_list(&spec["groups"]);
    if name.is_empty() && groups.is_empty() {
        return Err(Status::bad_request(
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ));
    }
    let extra = spec["extra"].as_object().into_iter().flatten();
    let extra: BTreeMap<_, _> = extra.map(|(key, values)| (key.clone(), object::text_list(values))).collect();
    Ok(User { name: name.to_owned(), uid: spec["uid"].as_str().unwrap_or_default().to_owned(), groups, extra })
}
