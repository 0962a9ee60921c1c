//! What is served from memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Uri};
use kube_wire::{RequestInfo, ResourceRequest, Target, Verb};

use crate::pods;

/// The body of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) body: Bytes,
    pub(super) media_type: &'static str,
}

/// The answers that were made so far.
#[derive(Debug)]
pub(super) struct Answers {
    pods: usize,
    everywhere: Bytes,
    /// By namespace.
    made: Mutex<BTreeMap<String, Made>>,
}

#[derive(Clone, Debug, Default)]
struct Made {
    small: Option<Bytes>,
    list: Option<Bytes>,
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
/// The object that is small.
const SMALL: &str = "bench-small";
/// What the selector of the lists has in it, however it is written.
const LABEL: &str = "frontend";
/// Namespaces that are remembered; a list is 15.7 MB.
const MOST_NAMESPACES: usize = 8;

// === impl Answers ===

impl Answers {
    pub(super) fn new(pods: usize) -> Self {
        Self { pods, everywhere: pods::list(pods).into(), made: Mutex::default() }
    }

    /// Nothing if it is the host's to answer.
    pub(super) fn of(&self, method: &Method, uri: &Uri) -> Option<Answer> {
        let info = RequestInfo::parse(method, uri.path(), uri.query()).ok()?;
        let Target::Resource(request) = info.target() else { return None };
        if request.resource() != "pods" || !request.group().is_empty() {
            return None;
        }
        match request.subresource() {
            None => Some(Answer { body: self.pods(&info, request)?, media_type: JSON }),
            Some("log") if request.name() == Some(SMALL) => {
                Some(Answer { body: self.list(request.namespace()?), media_type: TEXT })
            }
            Some(_) => None,
        }
    }

    fn pods(&self, info: &RequestInfo<'_>, request: &ResourceRequest<'_>) -> Option<Bytes> {
        match request.verb() {
            Verb::Get if request.name() == Some(SMALL) => self.small(request),
            Verb::List if info.query().all("labelSelector").flatten().any(|selector| selector.contains(LABEL)) => {
                match request.namespace() {
                    None => Some(self.everywhere.clone()),
                    Some(namespace) => Some(self.list(namespace)),
                }
            }
            _ => None,
        }
    }

    fn small(&self, request: &ResourceRequest<'_>) -> Option<Bytes> {
        let namespace = request.namespace()?;
        let make = || pods::small(SMALL, namespace).into();
        Some(self.made(namespace, |made| made.small.get_or_insert_with(make).clone()))
    }

    fn list(&self, namespace: &str) -> Bytes {
        let make = || pods::list_in(self.pods, namespace).into();
        self.made(namespace, |made| made.list.get_or_insert_with(make).clone())
    }

    fn made(&self, namespace: &str, make: impl FnOnce(&mut Made) -> Bytes) -> Bytes {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() >= MOST_NAMESPACES && !made.contains_key(namespace) {
            made.clear();
        }
        make(made.entry(namespace.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn ask(target: &str) -> Option<Value> {
        let answers = Answers::new(4);
        let answer = answers.of(&Method::GET, &target.parse().unwrap())?;
        assert_eq!(answers.of(&Method::GET, &target.parse().unwrap()).as_ref(), Some(&answer));
        Some(serde_json::from_slice(&answer.body).unwrap())
    }

    fn namespaces(list: &Value) -> Vec<&str> {
        list["items"].as_array().unwrap().iter().map(|pod| pod["metadata"]["namespace"].as_str().unwrap()).collect()
    }

    #[test]
    fn pods_are_in_the_namespace_that_was_asked_for() {
        let pod = ask("/api/v1/namespaces/edge-ke-beijing/pods/bench-small").unwrap();
        assert_eq!((&pod["kind"], &pod["metadata"]["name"]), (&"Pod".into(), &"bench-small".into()));
        assert_eq!(pod["metadata"]["namespace"], "edge-ke-beijing");
        let list = ask("/api/v1/namespaces/x/pods?labelSelector=app%3Dfrontend").unwrap();
        assert_eq!(namespaces(&list), ["x"; 4]);
        let list = ask("/api/v1/pods?labelSelector=app%3Dfrontend&limit=500").unwrap();
        assert_eq!(namespaces(&list)[..2], ["default-ke-beijing", "default-ke-hangzhou"]);
    }

    #[test]
    fn the_log_of_the_small_pod_is_as_long_as_a_list() {
        let answers = Answers::new(4);
        let of = |target: &str| answers.of(&Method::GET, &target.parse().unwrap()).unwrap();
        let log = of("/api/v1/namespaces/x/pods/bench-small/log");
        assert_eq!(log.body, of("/api/v1/namespaces/x/pods?labelSelector=app%3Dfrontend").body);
        assert_eq!(log.media_type, "text/plain");
    }

    #[test]
    fn the_small_pod_is_as_large_as_it_is_said_to_be() {
        let small = pods::small(SMALL, "edge-ke-beijing");
        assert!((3_700..4_000).contains(&small.len()), "{}", small.len());
    }

    #[test]
    fn everything_else_is_the_hosts() {
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
            assert_eq!(ask(target), None, "{target}");
        }
    }
}
