//! The responses from memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Uri};
use kube_wire::{RequestInfo, ResourceRequest, Target, Verb};

use crate::pods;

/// The body of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemoryResponse {
    pub(super) body: Bytes,
    pub(super) media_type: &'static str,
}

/// Creates responses, and keeps them.
#[derive(Debug)]
pub(super) struct MemoryResponses {
    pods: usize,
    /// The list of all namespaces.
    all: Bytes,
    /// By namespace.
    namespaces: Mutex<BTreeMap<String, NamespaceResponses>>,
}

#[derive(Clone, Debug, Default)]
struct NamespaceResponses {
    small: Option<Bytes>,
    list: Option<Bytes>,
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
/// The name of the small pod.
const SMALL: &str = "bench-small";
/// A part of the label selector of lists.
const LABEL: &str = "frontend";
/// The maximum number of namespaces with kept responses. A list has 15.7 MB.
const MAX_NAMESPACES: usize = 8;

// === impl MemoryResponses ===

impl MemoryResponses {
    pub(super) fn new(pods: usize) -> Self {
        Self { pods, all: pods::list(pods).into(), namespaces: Mutex::default() }
    }

    /// The response from memory. `None` if the host must respond.
    pub(super) fn get(&self, method: &Method, uri: &Uri) -> Option<MemoryResponse> {
        let info = RequestInfo::parse(method, uri.path(), uri.query()).ok()?;
        let Target::Resource(request) = info.target() else { return None };
        if request.resource() != "pods" || !request.group().is_empty() {
            return None;
        }
        match request.subresource() {
            None => Some(MemoryResponse { body: self.pods(&info, request)?, media_type: JSON }),
            Some("log") if request.name() == Some(SMALL) => {
                Some(MemoryResponse { body: self.list(request.namespace()?), media_type: TEXT })
            }
            Some(_) => None,
        }
    }

    fn pods(&self, info: &RequestInfo<'_>, request: &ResourceRequest<'_>) -> Option<Bytes> {
        match request.verb() {
            Verb::Get if request.name() == Some(SMALL) => self.small(request),
            Verb::List if info.query().all("labelSelector").flatten().any(|selector| selector.contains(LABEL)) => {
                match request.namespace() {
                    None => Some(self.all.clone()),
                    Some(namespace) => Some(self.list(namespace)),
                }
            }
            _ => None,
        }
    }

    fn small(&self, request: &ResourceRequest<'_>) -> Option<Bytes> {
        let namespace = request.namespace()?;
        let create = || pods::small(SMALL, namespace).into();
        Some(self.cached(namespace, |cached| cached.small.get_or_insert_with(create).clone()))
    }

    fn list(&self, namespace: &str) -> Bytes {
        let create = || pods::list_in(self.pods, namespace).into();
        self.cached(namespace, |cached| cached.list.get_or_insert_with(create).clone())
    }

    fn cached(&self, namespace: &str, create: impl FnOnce(&mut NamespaceResponses) -> Bytes) -> Bytes {
        let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if namespaces.len() >= MAX_NAMESPACES && !namespaces.contains_key(namespace) {
            namespaces.clear();
        }
        create(namespaces.entry(namespace.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn get(target: &str) -> Option<Value> {
        let responses = MemoryResponses::new(4);
        let response = responses.get(&Method::GET, &target.parse().unwrap())?;
        assert_eq!(responses.get(&Method::GET, &target.parse().unwrap()).as_ref(), Some(&response));
        Some(serde_json::from_slice(&response.body).unwrap())
    }

    fn namespaces(list: &Value) -> Vec<&str> {
        list["items"].as_array().unwrap().iter().map(|pod| pod["metadata"]["namespace"].as_str().unwrap()).collect()
    }

    #[test]
    fn pods_are_in_the_requested_namespace() {
        let pod = get("/api/v1/namespaces/edge-ke-beijing/pods/bench-small").unwrap();
        assert_eq!((&pod["kind"], &pod["metadata"]["name"]), (&"Pod".into(), &"bench-small".into()));
        assert_eq!(pod["metadata"]["namespace"], "edge-ke-beijing");
        let list = get("/api/v1/namespaces/x/pods?labelSelector=app%3Dfrontend").unwrap();
        assert_eq!(namespaces(&list), ["x"; 4]);
        let list = get("/api/v1/pods?labelSelector=app%3Dfrontend&limit=500").unwrap();
        assert_eq!(namespaces(&list)[..2], ["default-ke-beijing", "default-ke-hangzhou"]);
    }

    #[test]
    fn the_log_of_the_small_pod_is_as_long_as_a_list() {
        let responses = MemoryResponses::new(4);
        let get = |target: &str| responses.get(&Method::GET, &target.parse().unwrap()).unwrap();
        let log = get("/api/v1/namespaces/x/pods/bench-small/log");
        assert_eq!(log.body, get("/api/v1/namespaces/x/pods?labelSelector=app%3Dfrontend").body);
        assert_eq!(log.media_type, "text/plain");
    }

    #[test]
    fn the_small_pod_has_the_documented_size() {
        let small = pods::small(SMALL, "edge-ke-beijing");
        assert!((3_700..4_000).contains(&small.len()), "{}", small.len());
    }

    #[test]
    fn the_host_responds_to_all_other_requests() {
        for target in [
            "/api/v1/pods",
            "/api/v1/pods?labelSelector=app%3Dfrontend&watch=true",
            "/api/v1/namespaces/x/pods/other",
            "/api/v1/namespaces/x/pods/other/log",
            "/api/v1/namespaces/x/pods/bench-small/exec",
            "/api/v1/namespaces/x/configmaps/bench-small",
            "/apis/metrics.k8s.io/v1beta1/namespaces/x/pods/bench-small",
            "/version",
        ] {
            assert_eq!(get(target), None, "{target}");
        }
    }
}
