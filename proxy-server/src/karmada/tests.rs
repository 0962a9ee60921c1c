//! Joining and leaving over API servers that are maps from paths to objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use ops::pki::Authority;
use protocol::ClusterName;
use serde_json::{Value, json};

use super::api::{Api, Route, RouteError};
use super::leave::Leaver;
use super::objects::Member;
use super::pass::{Done, PassError, pass};
use super::plane::{Conflict, Plane};

const CLUSTER: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/ke-beijing";
const SECRET: &str = "/api/v1/namespaces/karmada-cluster/secrets/ke-beijing";
const MEMBER_SECRET: &str = "/api/v1/namespaces/karmada-cluster/secrets/karmada-ke-beijing";
const MEMBER_NAMESPACE: &str = "/api/v1/namespaces/karmada-cluster";

/// An API server. Clones are the same.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    made: u32,
    writes: u32,
}

/// A member and a control plane.
struct World {
    member: Store,
    plane: Store,
    authority: Authority,
}

// === impl Store ===

impl Store {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn put(&self, path: &str, object: Value) {
        self.lock().objects.insert(path.to_owned(), object);
    }

    fn get(&self, path: &str) -> Option<Value> {
        self.lock().objects.get(path).cloned()
    }

    fn writes(&self) -> u32 {
        self.lock().writes
    }
}

impl State {
    fn answer(&mut self, request: &Request<Bytes>) -> (StatusCode, Value) {
        let path = request.uri().path().to_owned();
        let body = || -> Value { serde_json::from_slice(request.body()).unwrap() };
        if *request.method() != Method::GET {
            self.writes += 1;
        }
        match *request.method() {
            Method::GET if path.ends_with("/clusters") => {
                let of_it = self.objects.iter().filter(|(at, _)| at.starts_with(&path)).map(|(_, object)| object);
                (StatusCode::OK, json!({"items": of_it.collect::<Vec<_>>()}))
            }
            Method::GET => match self.objects.get(&path) {
                Some(object) => (StatusCode::OK, object.clone()),
                None => (StatusCode::NOT_FOUND, Value::Null),
            },
            Method::POST => {
                let mut object = body();
                let at = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap_or("event"));
                if self.objects.contains_key(&at) {
                    return (StatusCode::CONFLICT, Value::Null);
                }
                self.made += 1;
                object["metadata"]["uid"] = format!("uid-{}", self.made).into();
                if object["type"] == "kubernetes.io/service-account-token" {
                    object["data"] = json!({"token": STANDARD.encode(format!("token-{}", self.made))});
                }
                self.objects.insert(at, object.clone());
                (StatusCode::CREATED, object)
            }
            Method::PATCH => {
                let object = self.objects.entry(path).or_insert(Value::Null);
                merge(object, body());
                (StatusCode::OK, object.clone())
            }
            Method::DELETE => match self.objects.remove(&path) {
                Some(object) => (StatusCode::OK, object),
                None => (StatusCode::NOT_FOUND, Value::Null),
            },
            _ => (StatusCode::METHOD_NOT_ALLOWED, Value::Null),
        }
    }
}

impl Route for Store {
    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, RouteError> {
        let (code, value) = self.lock().answer(&request);
        let mut response = Response::new(Bytes::from(value.to_string()));
        *response.status_mut() = code;
        Ok(response)
    }
}

// === impl World ===

impl World {
    fn new() -> Self {
        let (member, plane) = (Store::default(), Store::default());
        member.put("/readyz", json!("ok"));
        member.put("/api/v1/namespaces/kube-system", json!({"metadata": {"uid": "the-id"}}));
        let authority = Authority::create("serving", Duration::from_secs(3600)).unwrap();
        Self { member, plane, authority }
    }

    async fn pass(&self, wanted: &Member, force: bool) -> Result<Done, PassError> {
        let plane = Plane::new(Api::new(self.plane.clone()));
        pass(&Api::new(self.member.clone()), &plane, wanted, &self.authority, force).await
    }

    async fn leave(&self, was_ours: bool) {
        let member = Api::new(self.member.clone());
        let leaver = Leaver { name: &name(), in_member: Some(&member), was_ours };
        leaver.leave(&Plane::new(Api::new(self.plane.clone())), "cloud").await;
    }
}

fn name() -> ClusterName {
    "ke-beijing".parse().unwrap()
}

fn wanted() -> Member {
    Member {
        name: name(),
        kept_by: Some("cloud".to_owned()),
        api_endpoint: "https://ke-beijing.atoll.internal:443".to_owned(),
        proxy_url: Some("http://proxy:8090".to_owned()),
        proxy_header: BTreeMap::new(),
        labels: BTreeMap::new(),
        provider: None,
        region: None,
        zones: Vec::new(),
    }
}

/// RFC 7396, which is enough of an apply for objects without lists of others.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        merge(&mut target[&key], value);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_look_writes_nothing_nor_does_a_second_proxy_server() {
    let world = World::new();
    assert_eq!(world.pass(&wanted(), true).await.unwrap(), Done::Written);
    let secret = world.plane.get(SECRET).unwrap();
    let cluster = world.plane.get(CLUSTER).unwrap();
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], cluster["metadata"]["uid"]);
    assert_eq!(secret["data"]["caBundle"], STANDARD.encode(world.authority.certificate_pem()));

    let writes = (world.member.writes(), world.plane.writes());
    assert_eq!(world.pass(&wanted(), false).await.unwrap(), Done::Nothing);
    assert_eq!((world.member.writes(), world.plane.writes()), writes);
    // It begins with a write, which changes nothing.
    assert_eq!(world.pass(&wanted(), true).await.unwrap(), Done::Written);
    assert_eq!(world.plane.get(CLUSTER).unwrap(), cluster);
    assert_eq!(world.plane.get(SECRET).unwrap(), secret);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_deleted_is_made_anew_and_reaches_karmada() {
    let world = World::new();
    world.pass(&wanted(), true).await.unwrap();
    let before = world.plane.get(SECRET).unwrap();
    world.member.lock().objects.remove(MEMBER_SECRET);
    assert_eq!(world.pass(&wanted(), false).await.unwrap(), Done::Written);
    let now = world.plane.get(SECRET).unwrap();
    assert_ne!(now["data"]["token"], before["data"]["token"]);
    assert_eq!(now["data"]["token"], world.member.get(MEMBER_SECRET).unwrap()["data"]["token"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_made_for_a_place_that_is_taken_and_nothing_taken_away() {
    let world = World::new();
    let theirs = json!({"metadata": {"name": "ke-beijing", "uid": "u"}, "spec": {"id": "another"}});
    world.plane.put(CLUSTER, theirs.clone());
    let refused = world.pass(&wanted(), true).await.unwrap_err();
    assert!(matches!(refused.conflict(), Some(Conflict::OtherId { .. })), "{refused}");
    assert_eq!((world.member.writes(), world.plane.writes()), (0, 0));

    // Whoever joined it put this there.
    world.member.put(MEMBER_NAMESPACE, json!({"metadata": {"name": "karmada-cluster"}}));
    world.leave(false).await;
    assert_eq!(world.plane.get(CLUSTER), Some(theirs));
    assert!(world.member.get(MEMBER_NAMESPACE).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_has_one_name_in_karmada() {
    let world = World::new();
    let other = "/apis/cluster.karmada.io/v1alpha1/clusters/other";
    world.plane.put(other, json!({"metadata": {"name": "other"}, "spec": {"id": "the-id"}}));
    let refused = world.pass(&wanted(), true).await.unwrap_err();
    assert!(refused.to_string().contains("of Karmada as other"), "{refused}");
    assert!(world.plane.get(CLUSTER).is_none());
}

#[tokio::test(start_paused = true)]
async fn what_was_made_goes_and_nothing_else() {
    let world = World::new();
    world.pass(&wanted(), true).await.unwrap();
    world.leave(false).await;
    assert!(world.plane.get(CLUSTER).is_none());
    let left: Vec<String> = world.member.lock().objects.keys().cloned().collect();
    // What is in the namespace goes with it, on a real host.
    let outside = left.iter().filter(|path| !path.starts_with(MEMBER_NAMESPACE));
    assert_eq!(outside.collect::<Vec<_>>(), ["/api/v1/namespaces/kube-system", "/readyz"]);
}
