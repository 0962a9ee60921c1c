//! A host for dry runs: it answers yes to every question, and records the questions.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use kube_wire::media::JSON;
use kube_wire::{RequestInfo, ResourceRequest, Status, Target};
use protocol::ClusterName;
use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL};
use rewrite::{HostNamespace, VirtualNamespace};
use serde_json::{Value, json};

use super::question::Question;
use super::scope::is_namespaced;
use caller::reviews::wire::{ACCESS_REVIEWS, RULES_REVIEWS};
use host_client::api::Change;
use virtual_cluster::clusters::engine_name;
use virtual_cluster::nodes;
use virtual_cluster::shared::DEFINITIONS;

/// A host that exists only in memory.
pub(super) struct DryRunHost {
    /// The namespace in the request's path, as the host would store it. It is assumed to exist.
    namespace: Option<Value>,
    /// The resource that the request names.
    resource: Option<Discovered>,
    questions: Arc<Mutex<Vec<Question>>>,
}

struct Discovered {
    group: String,
    version: String,
    resource: String,
    namespaced: bool,
    guessed: bool,
}

// === impl DryRunHost ===

impl DryRunHost {
    pub(super) fn new(cluster: &ClusterName, info: &RequestInfo<'_>) -> Self {
        let request = match info.target() {
            Target::Resource(request) => Some(request),
            Target::NonResource(_) => None,
        };
        let cluster = engine_name(cluster);
        let namespace = request.and_then(ResourceRequest::namespace).and_then(|name| VirtualNamespace::new(name).ok());
        let namespace = namespace.map(|name| {
            let host = HostNamespace::derive(&name, &cluster);
            let labels = json!({CLUSTER_LABEL: cluster.as_str(), NAMESPACE_LABEL: name.as_str()});
            let metadata = json!({"name": host.as_str(), "uid": "0", "resourceVersion": "1", "labels": labels});
            json!({"metadata": metadata, "status": {"phase": "Active"}})
        });
        Self { namespace, resource: request.map(Discovered::of), questions: Arc::default() }
    }

    /// The questions that it has received. The list grows.
    pub(super) fn questions(&self) -> Arc<Mutex<Vec<Question>>> {
        Arc::clone(&self.questions)
    }

    /// The namespaces of the host, as a watch would deliver them.
    pub(super) fn namespaces(&self) -> Vec<Change> {
        self.namespace.iter().cloned().map(Change::Applied).collect()
    }

    pub(super) fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let body = || serde_json::from_slice::<Value>(request.body()).unwrap_or_default();
        let target = || request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
        let method = || request.method().to_string();
        match (request.method(), path) {
            (&Method::POST, ACCESS_REVIEWS) => {
                self.note(access_review(&body()["spec"]));
                answer(StatusCode::CREATED, &json!({"status": {"allowed": true}}))
            }
            (&Method::POST, RULES_REVIEWS) => {
                let namespace = text(&body()["spec"]["namespace"]);
                self.note(Question::Rules { namespace });
                let all = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
                let status = json!({"resourceRules": [], "nonResourceRules": [all], "incomplete": false});
                answer(StatusCode::CREATED, &json!({"status": status}))
            }
            (&Method::GET, "/api" | "/apis") => self.discovery(path),
            (&Method::GET, DEFINITIONS) => {
                answer(StatusCode::OK, &json!({"metadata": {"resourceVersion": "1"}, "items": []}))
            }
            (&Method::GET, nodes::PATH) => {
                self.note(Question::Node { target: target() });
                answer(StatusCode::OK, &json!({"items": [{}]}))
            }
            _ if query.split('&').any(|pair| pair.starts_with("dryRun=")) => {
                self.note(Question::DryRun { method: method(), target: target() });
                answer(StatusCode::OK, &tried(body()))
            }
            _ => {
                self.note(Question::Live { method: method(), target: target() });
                let status = Status::service_unavailable("this depends on what the host cluster has");
                response(StatusCode::SERVICE_UNAVAILABLE, status.to_json().into())
            }
        }
    }

    /// Aggregated discovery (KEP-3352) of the resource that the request names, and of no other.
    fn discovery(&self, path: &str) -> Response<Bytes> {
        let mut items = Vec::new();
        if let Some(found) = self.resource.as_ref().filter(|found| found.group.is_empty() == (path == "/api")) {
            self.note(Question::Discovery { guessed: found.guessed, namespaced: found.namespaced });
            let scope = if found.namespaced { "Namespaced" } else { "Cluster" };
            let kind = json!({"kind": found.resource});
            let resource = json!({"resource": found.resource, "scope": scope, "responseKind": kind});
            let versions = json!([{"version": found.version, "resources": [resource]}]);
            items.push(json!({"metadata": {"name": found.group}, "versions": versions}));
        }
        let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items});
        let mut answer = answer(StatusCode::OK, &list);
        let media_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        answer
    }

    fn note(&self, question: Question) {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).push(question);
    }
}

// === impl Discovered ===

impl Discovered {
    fn of(request: &ResourceRequest<'_>) -> Self {
        let (group, resource) = (request.group(), request.resource());
        let known = is_namespaced(group, resource);
        // A path without a namespace names or creates an object without one. A list may be of all namespaces.
        let is_list = matches!(request.verb(), kube_wire::Verb::List | kube_wire::Verb::Watch);
        Self {
            group: group.to_owned(),
            version: request.version().to_owned(),
            resource: resource.to_owned(),
            namespaced: known.unwrap_or(is_list),
            guessed: known.is_none(),
        }
    }
}

fn access_review(spec: &Value) -> Question {
    let attributes = &spec["resourceAttributes"];
    let mut resource = text(&attributes["resource"]);
    for (separator, part) in [(".", &attributes["group"]), ("/", &attributes["subresource"])] {
        if let Some(part) = part.as_str().filter(|part| !part.is_empty()) {
            resource.push_str(separator);
            resource.push_str(part);
        }
    }
    Question::Access {
        user: text(&spec["user"]),
        verb: text(&attributes["verb"]),
        resource,
        name: text(&attributes["name"]),
        namespace: text(&attributes["namespace"]),
    }
}

/// The result of a dry run. The existing object has version 1, and the request replaces its content.
fn tried(mut object: Value) -> Value {
    if !object.is_object() {
        object = json!({});
    }
    let metadata = &mut object["metadata"];
    if metadata.is_null() || metadata.is_object() {
        metadata["resourceVersion"] = "1".into();
    }
    object
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn answer(status: StatusCode, body: &Value) -> Response<Bytes> {
    response(status, body.to_string().into())
}

fn response(status: StatusCode, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}
