//! A host in memory with one kind, PriorityClass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};

pub(super) const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

/// Returns the response for a request.
type Answerer = dyn Fn(&Request<Bytes>) -> Response<Bytes> + Send + Sync;

/// The stored objects by name, and the number of writes.
#[derive(Debug, Default)]
pub(super) struct Memory {
    stored: Mutex<(BTreeMap<String, Value>, u64)>,
}

impl Memory {
    pub(super) fn stored(&self, name: &str) -> Option<Value> {
        self.stored.lock().unwrap().0.get(name).cloned()
    }

    pub(super) fn put(&self, mut object: Value) {
        let (stored, version) = &mut *self.stored.lock().unwrap();
        *version += 1;
        object["metadata"]["resourceVersion"] = version.to_string().into();
        stored.insert(object["metadata"]["name"].as_str().unwrap().to_owned(), object);
    }

    /// The number of writes.
    pub(super) fn writes(&self) -> u64 {
        self.stored.lock().unwrap().1
    }

    pub(super) fn answerer(self: &Arc<Self>) -> Arc<Answerer> {
        let memory = Arc::clone(self);
        Arc::new(move |request| {
            let (status, body) = memory.answer(request);
            let mut response = Response::new(Bytes::from(body.to_string()));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            let media_type = if request.uri().path() == "/apis" {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            } else {
                "application/json"
            };
            response.headers_mut().insert(header::CONTENT_TYPE, media_type.parse().unwrap());
            response
        })
    }

    fn answer(&self, request: &Request<Bytes>) -> (u16, Value) {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let path = request.uri().path();
        if path.ends_with("subjectaccessreviews") {
            return (201, json!({"status": {"allowed": true}}));
        }
        if path == "/apis" {
            let resource =
                json!({"resource": "priorityclasses", "scope": "Cluster", "responseKind": {"kind": "PriorityClass"}});
            let versions = json!([{"version": "v1", "resources": [resource]}]);
            return (200, json!({"items": [{"metadata": {"name": "scheduling.k8s.io"}, "versions": versions}]}));
        }
        let Some(name) = path.strip_prefix(CLASSES) else {
            return (200, json!({"metadata": {"resourceVersion": "1"}, "items": []}));
        };
        let name = name.trim_start_matches('/');
        let is_dry = request.uri().query().is_some_and(|query| query.contains("dryRun"));
        let live = self.stored(name);
        let failed = |code: u16, reason: &str| {
            (code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}))
        };
        match (request.method(), live) {
            (&Method::GET, Some(live)) => (200, live),
            (&Method::POST, _) => {
                let mut object = body;
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                if self.stored(&name).is_some() {
                    return failed(409, "AlreadyExists");
                }
                object["metadata"]["uid"] = "1".into();
                object["preemptionPolicy"] = "PreemptLowerPriority".into();
                if !is_dry {
                    self.put(object.clone());
                    object = self.stored(&name).unwrap();
                }
                (201, object)
            }
            (&Method::PUT, Some(live)) => {
                let mut object = body;
                if object["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"] {
                    return failed(409, "Conflict");
                }
                object["preemptionPolicy"] = "PreemptLowerPriority".into();
                if !is_dry && object != live {
                    self.put(object);
                    return (200, self.stored(name).unwrap());
                }
                (200, object)
            }
            (&Method::DELETE, Some(live)) => {
                if body["preconditions"]["resourceVersion"] != live["metadata"]["resourceVersion"] {
                    return failed(409, "Conflict");
                }
                if !is_dry {
                    self.stored.lock().unwrap().0.remove(name);
                }
                (200, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
            }
            _ => failed(404, "NotFound"),
        }
    }
}
