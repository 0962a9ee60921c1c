//! What a script may answer at any time, because it says nothing about the request that a test makes.

use serde_json::{Value, json};

use crate::received::Received;
use crate::reply::Reply;

/// A resource in discovery.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The plural.
    pub resource: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Whether it is namespaced.
    pub is_namespaced: bool,
    /// Whether a CustomResourceDefinition defines it.
    pub is_custom: bool,
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const RULES_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

/// Answers SubjectAccessReviews of the agent: a question, as [`Received`] prints it after `review`, is allowed if this
/// function says so.
pub fn reviews(
    is_allowed: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static {
    move |received| {
        let question = received.is_review().then(|| received.to_string())?;
        let allowed = is_allowed(question.trim_start_matches("review "));
        Some(Reply::json(201, &json!({"status": {"allowed": allowed}})))
    }
}

/// Answers SelfSubjectRulesReviews: every caller may request these paths.
pub fn paths(urls: &'static [&'static str]) -> impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static {
    move |received| {
        let rules = json!([{"verbs": ["*"], "nonResourceURLs": urls}]);
        let status = json!({"resourceRules": [], "nonResourceRules": rules, "incomplete": false});
        (received.path() == RULES_REVIEWS).then(|| Reply::json(201, &json!({"status": status})))
    }
}

/// Answers discovery, in the aggregated form (KEP-3352), and the list of definitions.
pub fn discovery(resources: &[Resource]) -> impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static {
    let resources = resources.to_vec();
    move |received| {
        if received.method != "GET" {
            return None;
        }
        match received.path() {
            "/api" => Some(document(resources.iter().filter(|found| found.group.is_empty()))),
            "/apis" => Some(document(resources.iter().filter(|found| !found.group.is_empty()))),
            DEFINITIONS => {
                let custom = resources.iter().filter(|found| found.is_custom);
                let name = |found: &Resource| format!("{}.{}", found.resource, found.group);
                let items: Vec<_> = custom.map(|found| json!({"metadata": {"name": name(found)}})).collect();
                Some(Reply::json(200, &json!({"metadata": {"resourceVersion": "1"}, "items": items})))
            }
            _ => None,
        }
    }
}

fn document<'r>(resources: impl Iterator<Item = &'r Resource>) -> Reply {
    let group = |found: &Resource| {
        let scope = if found.is_namespaced { "Namespaced" } else { "Cluster" };
        let resource = json!({"resource": found.resource, "scope": scope, "responseKind": {"kind": found.kind}});
        let versions = json!([{"version": found.version, "resources": [resource]}]);
        json!({"metadata": {"name": found.group}, "versions": versions})
    };
    let items: Vec<Value> = resources.map(group).collect();
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items});
    let media_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    Reply::empty(200).with_header("content-type", media_type).with_body(list.to_string())
}
