//! The JSON of reviews: the used parts of `k8s.io/api/{authentication,authorization}/v1`.

use std::collections::BTreeMap;
use std::sync::Arc;

use rewrite::HostNamespace;
use serde::{Deserialize, Serialize};

use super::null::null_is_default;
use super::question::{Attributes, Decision};
use super::rules::Rules;
use super::token_user::TokenUser;
use crate::identity::HostUser;

/// The path of TokenReviews.
pub const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
/// The path of SubjectAccessReviews.
pub const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// The path of SelfSubjectRulesReviews.
pub const RULES_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

const AUTHENTICATION: &str = "authentication.k8s.io/v1";
const AUTHORIZATION: &str = "authorization.k8s.io/v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<S> {
    api_version: &'static str,
    kind: &'static str,
    spec: S,
}

#[derive(Serialize)]
struct TokenSpec<'a> {
    token: &'a str,
}

#[derive(Serialize)]
struct RulesSpec<'a> {
    namespace: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessSpec<'a> {
    user: &'a str,
    groups: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    extra: BTreeMap<&'a str, &'a [String]>,
    resource_attributes: ResourceAttributes<'a>,
}

#[derive(Serialize)]
struct ResourceAttributes<'a> {
    namespace: &'a str,
    verb: &'a str,
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    subresource: &'a str,
    name: &'a str,
}

#[derive(Deserialize)]
struct Reviewed<S> {
    status: S,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenStatus {
    authenticated: bool,
    #[serde(deserialize_with = "null_is_default")]
    user: TokenUser,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AccessStatus {
    allowed: bool,
    denied: bool,
    reason: String,
    evaluation_error: String,
}

/// The maximum length of the host's reason, in bytes. It names a role, and the length of that name has no limit of its
/// own. Answers are cached.
const MAX_REASON: usize = 1024;

/// The body of a TokenReview. It contains the token, so send it and drop it.
pub(super) fn token_review(token: &str) -> Vec<u8> {
    write(&Review { api_version: AUTHENTICATION, kind: "TokenReview", spec: TokenSpec { token } })
}

/// The body of a SubjectAccessReview.
pub(super) fn access_review(user: &HostUser, attributes: &Attributes<'_>) -> Vec<u8> {
    let Attributes { verb, group, version, resource, subresource, name, namespace } = *attributes;
    let namespace = namespace.as_str();
    let spec = AccessSpec {
        user: user.name(),
        groups: user.groups(),
        uid: user.uid(),
        extra: user.extra().iter().map(|(key, values)| (&**key, &**values)).collect(),
        resource_attributes: ResourceAttributes { namespace, verb, group, version, resource, subresource, name },
    };
    write(&Review { api_version: AUTHORIZATION, kind: "SubjectAccessReview", spec })
}

/// The body of a SelfSubjectRulesReview.
pub(super) fn rules_review(namespace: &HostNamespace) -> Vec<u8> {
    let spec = RulesSpec { namespace: namespace.as_str() };
    write(&Review { api_version: AUTHORIZATION, kind: "SelfSubjectRulesReview", spec })
}

/// The owner of the token. `None` if the token is not valid, or the user has no name.
pub(super) fn token_user(answer: &[u8]) -> Result<Option<TokenUser>, serde_json::Error> {
    let Reviewed { status } = serde_json::from_slice::<Reviewed<TokenStatus>>(answer)?;
    let TokenStatus { authenticated, user } = status;
    Ok((authenticated && !user.name.is_empty()).then_some(user))
}

/// Whether the action is allowed.
pub(super) fn decision(answer: &[u8]) -> Result<Decision, serde_json::Error> {
    let Reviewed { status } = serde_json::from_slice::<Reviewed<AccessStatus>>(answer)?;
    let reason = if status.reason.is_empty() { status.evaluation_error } else { status.reason };
    // The API requires that not both `denied` and `allowed` are set. If both are, a refusal is the safe choice.
    let mut end = reason.len().min(MAX_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let reason = &reason[..end];
    Ok(Decision { allowed: status.allowed && !status.denied, reason: Arc::from(reason) })
}

/// The rules.
pub(super) fn rules(answer: &[u8]) -> Result<Rules, serde_json::Error> {
    Ok(serde_json::from_slice::<Reviewed<Rules>>(answer)?.status)
}

fn write(review: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(review).expect("strings, lists and maps with string keys are JSON")
}

#[cfg(test)]
mod tests;
