//! Checks whether a caller may grant certain rights, by an attempt that stores nothing.
//!
//! The attempt is a dry run as the caller with one additional group: it writes a Role with these rules, or a
//! RoleBinding to this role, to the root namespace. The group may write only objects of [one name](ATTEMPT), so the
//! caller gains nothing but the right to make the attempt. The host then compares the rules, or checks the verb `bind`,
//! as for its own objects (`ConfirmNoEscalation` in pkg/registry/rbac/validation, and the packages `policybased` in
//! pkg/registry/rbac).
//!
//! A Role cannot have rules about paths. The agent compares those with the caller's SelfSubjectRulesReview of the host.

use std::collections::HashSet;
use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use kube_wire::{ResourceRequest, Status};
use rewrite::mapping::identity::Seen;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::exchange::host::sample::{NOT_HELD, send_to_decide};
use crate::exchange::host::status::status_of;
use crate::exchange::kinds::RBAC;
use crate::exchange::undecided::Undecided;
use crate::refusal::Refusal;
use caller::authz::{SETTLING_ATTEMPTS, SETTLING_PAUSE};
use caller::identity::ATTEMPT;
use caller::reviews::{Attributes, Rules};
use host_client::full;

/// The maximum number of paths that a refusal names.
const MAX_REPORTED: usize = 100;

/// The Role or RoleBinding that is attempted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Attempt<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<&'a [&'a Value]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subjects: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role_ref: Option<&'a Value>,
}

/// A ClusterRole that a client writes.
pub(crate) struct WrittenRole<'a> {
    /// Its name on the host.
    pub(crate) host: &'a str,
    /// Its name in the virtual cluster.
    pub(crate) name: &'a str,
    pub(crate) rules: &'a Value,
    /// Whether it aggregates rules of other roles, which requires all rights.
    pub(crate) aggregates: bool,
}

/// Refuses a ClusterRole that grants rights that its writer does not hold.
pub(crate) async fn may_grant(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    role: &WrittenRole<'_>,
) -> Result<(), Refusal> {
    let WrittenRole { host, name, rules, aggregates } = *role;
    if allowed(call, "escalate", "clusterroles", host).await? {
        return Ok(());
    }
    let everything = json!([
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]);
    let rules = if aggregates { &everything } else { rules };
    let about_paths = |rule: &&Value| rule["nonResourceURLs"].as_array().is_some_and(|urls| !urls.is_empty());
    let (paths, resources): (Vec<&Value>, Vec<&Value>) = rules.as_array().into_iter().flatten().partition(about_paths);

    let mut missing = String::new();
    if !resources.is_empty() {
        if allowed(call, "escalate", "roles", ATTEMPT).await? {
            // The host would not compare the rules of the attempt.
            let sentence = "cannot check whether you hold the rights that it grants, because you may escalate roles \
                            but not clusterroles: ask for the verb \"escalate\" on clusterroles too";
            return Err(Status::forbidden_because(request.group_resource(), name, sentence).into());
        }
        let role = Attempt { rules: Some(&resources), ..Attempt::of("Role") };
        if let Some(status) = attempt(call, request, "roles", &role).await? {
            missing.push_str(not_held(status, request, name)?.trim_end());
        }
    }
    if !paths.is_empty() {
        let held = call.services.authz.rules(&call.api.caller.host, &call.api.cluster.root).await;
        let held = held.map_err(|error| Refusal::from(Status::from(&error)))?;
        for lacking in lacking(&held, &paths) {
            let line = if missing.is_empty() { "" } else { "\n" };
            write!(missing, "{line}{lacking}").expect("writing to a string");
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(not_granted(call, request, name, &missing)) }
}

/// Refuses a ClusterRoleBinding to a role that its writer may not bind.
pub(crate) async fn may_bind(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    name: &str,
    binding: &Value,
) -> Result<(), Refusal> {
    let role = binding["roleRef"]["name"].as_str().unwrap_or_default();
    if allowed(call, "bind", "clusterroles", role).await? {
        return Ok(());
    }
    let binding = Attempt {
        subjects: Some(&binding["subjects"]),
        role_ref: Some(&binding["roleRef"]),
        ..Attempt::of("RoleBinding")
    };
    match attempt(call, request, "rolebindings", &binding).await? {
        None => Ok(()),
        Some(status) => {
            let missing = not_held(status, request, name)?;
            Err(not_granted(call, request, name, &missing))
        }
    }
}

// === impl Attempt ===

impl Attempt<'_> {
    /// An attempt that grants nothing yet.
    fn of(kind: &'static str) -> Self {
        let (api_version, metadata) = ("rbac.authorization.k8s.io/v1", json!({"name": ATTEMPT}));
        Self { api_version, kind, metadata, rules: None, subjects: None, role_ref: None }
    }
}

async fn allowed(call: &Undecided<'_>, verb: &str, resource: &str, name: &str) -> Result<bool, Refusal> {
    let namespace = &call.api.cluster.root;
    let attributes = Attributes { verb, group: RBAC, version: "v1", resource, subresource: "", name, namespace };
    let decision = call.outside(call.services.authz.check(&call.api.caller.host, &attributes)).await;
    decision.map(|decision| decision.allowed).map_err(|error| Refusal::from(Status::from(&error)))
}

/// Makes an attempt, and returns the host's refusal, if any. It is repeated soon after a write, because the host's
/// caches may not have the role or the rights yet.
async fn attempt(
    call: &Undecided<'_>,
    about: &ResourceRequest<'_>,
    resource: &str,
    object: &Attempt<'_>,
) -> Result<Option<Status>, Refusal> {
    let object = Bytes::from(serde_json::to_vec(object).expect("values are JSON"));
    let root = &call.api.cluster.root;
    let target = format!("/apis/{RBAC}/v1/namespaces/{root}/{resource}/{ATTEMPT}?dryRun=All");
    let mut headers = HeaderMap::new();
    call.api.caller.host.attempting().write(&mut headers);
    for name in [header::ACCEPT, header::CONTENT_TYPE] {
        headers.insert(name, HeaderValue::from_static("application/json"));
    }
    for tried in 0.. {
        let mut request = Request::new(full(object.clone()));
        *request.method_mut() = Method::PUT;
        *request.uri_mut() = target.parse().expect("labels and constants make a target");
        *request.headers_mut() = headers.clone();
        let response = send_to_decide(call, request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(None);
        }
        let may_change = matches!(status, StatusCode::FORBIDDEN | StatusCode::NOT_FOUND);
        if may_change && tried < SETTLING_ATTEMPTS && call.services.authz.is_settling(&call.api.cluster.name) {
            sleep(SETTLING_PAUSE * (tried + 1)).await;
            continue;
        }
        let refusal = status_of(call, about, &call.api.mapping, response).await;
        return Ok(Some(refusal.unwrap_or_else(|| Status::internal_error("the host's response is not a Status"))));
    }
    unreachable!("the last attempt returns")
}

/// The rules that the caller does not hold, from the host's refusal. Any other refusal is an error.
fn not_held(status: Status, request: &ResourceRequest<'_>, name: &str) -> Result<String, Refusal> {
    if status.code != 403 {
        return Err(status.into());
    }
    if let Some((_, rules)) = status.message.split_once(NOT_HELD) {
        return Ok(rules.to_owned());
    }
    // Something else on the host, such as an admission policy, refuses the attempt.
    let why = status.message.split_once(" is forbidden: ").map_or(&*status.message, |(_, why)| why);
    Err(Status::forbidden_because(request.group_resource(), name, why).into())
}

fn not_granted(call: &Undecided<'_>, request: &ResourceRequest<'_>, name: &str, missing: &str) -> Refusal {
    let groups = call.api.caller.host.groups().iter().filter_map(|group| match call.api.mapping.seen(group) {
        Seen::Own(group) => Some(group),
        // A counterpart on the host of one of the client's groups.
        Seen::Foreign => None,
    });
    let groups: Vec<_> = groups.map(|group| format!("{group:?}")).collect();
    let user = call.api.caller.virtual_name();
    let sentence = format!("user {user:?} (groups=[{}]) {NOT_HELD}{missing}", groups.join(" "));
    Status::forbidden_because(request.group_resource(), name, &sentence).into()
}

/// The path rules that the caller lacks, as `CompactString` in pkg/apis/rbac/v1/helpers.go prints them: each pair of
/// path and verb once, and only the first [`MAX_REPORTED`]. The number of pairs of a rule is the product of the lengths of
/// its lists.
fn lacking(held: &Rules, rules: &[&Value]) -> Vec<String> {
    let mut missing = Vec::new();
    let mut found = HashSet::new();
    for rule in rules {
        let verbs = distinct(&rule["verbs"]);
        for url in distinct(&rule["nonResourceURLs"]) {
            for &verb in &verbs {
                if held.allow_path(verb, url) || !found.insert((url, verb)) {
                    continue;
                }
                if missing.len() == MAX_REPORTED {
                    missing.push("(and more)".to_owned());
                    return missing;
                }
                missing.push(format!("{{NonResourceURLs:[{url:?}], Verbs:[{verb:?}]}}"));
            }
        }
    }
    missing
}

/// The distinct texts in a list.
fn distinct(list: &Value) -> Vec<&str> {
    let mut seen = HashSet::new();
    list.as_array().into_iter().flatten().filter_map(Value::as_str).filter(|text| seen.insert(*text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_about_paths_are_compared_one_by_one() {
        let held: Rules = serde_json::from_value(json!({
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/api/*", "/version"]}], "resourceRules": [],
        }))
        .unwrap();
        let lacking =
            |verbs: &[&str], urls: &[&str]| lacking(&held, &[&json!({"verbs": verbs, "nonResourceURLs": urls})]);
        assert!(lacking(&["get"], &["/api/*", "/api/v1", "/version"]).is_empty());
        assert_eq!(lacking(&["get", "post"], &["/version"]), [r#"{NonResourceURLs:["/version"], Verbs:["post"]}"#]);
        assert_eq!(lacking(&["get"], &["*", "/version/*"]).len(), 2);
        assert_eq!(lacking(&["*"], &["/version"]).len(), 1);
        let all: Rules =
            serde_json::from_value(json!({"nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]})).unwrap();
        assert!(super::lacking(&all, &[&json!({"verbs": ["*"], "nonResourceURLs": ["*"]})]).is_empty());
    }

    #[test]
    fn the_message_about_path_rules_is_bounded() {
        // Without the limit, these pairs would fill the memory.
        let same = json!({"verbs": vec!["get"; 100_000], "nonResourceURLs": vec!["/a"; 100_000]});
        let one = r#"{NonResourceURLs:["/a"], Verbs:["get"]}"#;
        assert_eq!(lacking(&Rules::default(), &[&same, &same]), [one]);
        let verbs: Vec<_> = (0..100_000).map(|number| format!("verb{number}")).collect();
        let paths: Vec<_> = (0..100_000).map(|number| format!("/{number}")).collect();
        let many = lacking(&Rules::default(), &[&json!({"verbs": verbs, "nonResourceURLs": paths})]);
        assert_eq!((many.len(), &*many[0]), (MAX_REPORTED + 1, r#"{NonResourceURLs:["/0"], Verbs:["verb0"]}"#));
        assert_eq!(many[MAX_REPORTED], "(and more)");
    }
}
