//! Requests of two virtual clusters for shared objects, with a host in memory.

mod memory;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, header};
use http_body_util::BodyExt as _;
use kube_wire::RequestInfo;
use ops::drain::Tasks;
use ops::files::Watched;
use protocol::identity::Identity;
use rewrite::view::Certificate;
use serde_json::{Value, json};

use crate::config::ProxyAgentConfiguration;
use crate::exchange::authenticate::authenticate;
use crate::exchange::body::Body;
use crate::exchange::call::Call;
use crate::exchange::carry_out::carry_out;
use crate::exchange::decide::decide;
use crate::exchange::log_metadata::LogMetadata;
use crate::exchange::services::Services;
use crate::refusal::Refusal;
use host_client::Host;
use host_client::api::{Change, Following};
use memory::{CLASSES, Memory};
use virtual_cluster::clusters::VirtualCluster;

const CONFIG: &str = "\
apiVersion: atoll.dev/v1alpha1
kind: ProxyAgentConfiguration
servers: [proxy:8091]
identity: {certificate: a.crt, key: a.key, serverCA: s.crt}
host: {kubeconfig: h}
sharedObjects: {writable: [priorityclasses.scheduling.k8s.io]}
virtualClusters:
- {name: ke, nodeSelector: {location: beijing}}
- {name: hz, nodeSelector: {location: hangzhou}}
";

struct World {
    services: Services,
    memory: Arc<Memory>,
}

/// A watch that has no events after the initial list.
struct EmptyWatch(bool);

impl Following for EmptyWatch {
    async fn next(&mut self) -> Change {
        if std::mem::replace(&mut self.0, true) { std::future::pending().await } else { Change::Synced }
    }
}

impl World {
    fn new() -> Self {
        let config: ProxyAgentConfiguration = ops::config::parse(CONFIG, Path::new("c.yaml")).unwrap();
        let memory = Arc::new(Memory::default());
        let host = Host::answered_by(memory.answerer(), &Tasks::new());
        let services = Services::new(&config, host, Watched::fixed(Certificate::new(""))).unwrap();
        Self { services, memory }
    }

    fn cluster(&self, name: &str) -> Arc<VirtualCluster> {
        self.services.clusters.get(&name.parse().unwrap()).unwrap()
    }

    /// Makes a request as an administrator. Returns the status code of the response, and its body or message.
    async fn ask(&self, cluster: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let media_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let cluster = self.cluster(cluster);
        let mut call = authorised(&self.services, &cluster, &method, path, media_type).await;
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        match carry_out(&mut call, &Body::Whole(body)).await {
            Ok(response) => {
                let code = response.status().as_u16();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                assert!(!String::from_utf8_lossy(&body).contains("atoll.dev"), "{body:?}");
                let body: Value = serde_json::from_slice(&body).unwrap();
                (code, if code < 400 { body } else { body["message"].clone() })
            }
            Err(refusal) => status_of(refusal),
        }
    }

    async fn create(&self, cluster: &str, value: i64) -> u16 {
        self.ask(cluster, Method::POST, CLASSES, &class(cluster, value)).await.0
    }

    async fn update(&self, cluster: &str, value: i64) -> u16 {
        self.ask(cluster, Method::PUT, &format!("{CLASSES}/a"), &class(cluster, value)).await.0
    }

    async fn delete(&self, cluster: &str) -> u16 {
        self.ask(cluster, Method::DELETE, &format!("{CLASSES}/a"), &Value::Null).await.0
    }

    async fn labels(&self, cluster: &str) -> Value {
        let (_, shown) = self.ask(cluster, Method::GET, &format!("{CLASSES}/a"), &Value::Null).await;
        shown.pointer("/metadata/labels").cloned().unwrap_or_default()
    }
}

/// A request of an administrator, after the phase `authorise`.
async fn authorised<'a>(
    services: &'a Services,
    cluster: &'a Arc<VirtualCluster>,
    method: &Method,
    path: &'a str,
    media_type: &str,
) -> Call<'a> {
    let info = RequestInfo::parse(method, path, None).unwrap();
    let authenticated = authenticate(services, cluster, info, headers(media_type)).await.unwrap();
    authenticated.authorise().await.unwrap()
}

/// The headers of a request by an administrator.
fn headers(content_type: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
    headers.insert(header::USER_AGENT, "kubectl/v1".parse().unwrap());
    let groups = vec!["system:masters".to_owned()];
    Identity { user: "admin".into(), groups, uid: None, credential: None }.write(&mut headers);
    headers
}

fn status_of(refusal: Refusal) -> (u16, Value) {
    let status = refusal.into_status();
    (status.code, json!(status.message))
}

fn class(owner: &str, value: i64) -> Value {
    let metadata = json!({"name": "a", "labels": {"owner": owner}});
    json!({"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": metadata, "value": value})
}

async fn known(world: &World) {
    let roles = world.services.clusters.roles();
    let _ = tokio::time::timeout(std::time::Duration::ZERO, roles.follow(EmptyWatch(false))).await;
}

#[tokio::test]
async fn one_object_is_had_by_two() {
    let world = World::new();
    known(&world).await;
    assert_eq!(world.create("ke", 1).await, 201);
    assert_eq!(world.labels("hz").await, Value::Null);
    assert_eq!((world.update("hz", 1).await, world.delete("hz").await), (404, 404));
    // With another specification, and then with the same one.
    assert_eq!(
        (world.create("hz", 2).await, world.create("hz", 1).await, world.create("hz", 1).await),
        (409, 201, 409)
    );
    assert_eq!((world.labels("ke").await, world.labels("hz").await), (json!({"owner": "ke"}), json!({"owner": "hz"})));
    let labelled = json!({"metadata": {"labels": {"more": "x"}}});
    let (code, shown) = world.ask("ke", Method::PATCH, &format!("{CLASSES}/a"), &labelled).await;
    assert_eq!((code, &shown["metadata"]["labels"]), (200, &json!({"owner": "ke", "more": "x"})));
    assert_eq!(world.labels("hz").await, json!({"owner": "hz"}));
    assert_eq!((world.delete("ke").await, world.labels("ke").await), (200, Value::Null));
    assert_eq!((world.labels("hz").await, world.create("ke", 1).await), (json!({"owner": "hz"}), 201));
    assert_eq!((world.delete("hz").await, world.delete("ke").await), (200, 200));
    assert_eq!(world.memory.stored("a"), None);
}

#[tokio::test]
async fn a_change_takes_all() {
    let world = World::new();
    known(&world).await;
    world.create("ke", 1).await;
    assert_eq!(world.update("ke", 2).await, 200);
    assert_eq!(world.create("hz", 2).await, 201);
    assert_eq!((world.update("ke", 3).await, world.update("hz", 4).await), (409, 409));
    let before = world.memory.writes();
    assert_eq!(
        (world.update("ke", 3).await, world.update("hz", 4).await, world.update("ke", 3).await),
        (409, 409, 409)
    );
    assert_eq!(world.memory.writes(), before, "a recorded change is recorded again");
    assert_eq!(world.memory.stored("a").unwrap()["value"], 2);
    assert_eq!((world.update("hz", 3).await, world.update("ke", 3).await), (200, 200));
    assert_eq!(world.memory.stored("a").unwrap()["value"], 3);
    // Changes that were requested earlier no longer count.
    assert_eq!(world.update("hz", 4).await, 409);
    assert_eq!((world.delete("ke").await, world.update("hz", 4).await), (200, 200));
}

#[tokio::test]
async fn the_operators_stays_the_operators() {
    let world = World::new();
    known(&world).await;
    world.memory.put(json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "value": 1,
        "preemptionPolicy": "PreemptLowerPriority"}));
    assert_eq!((world.create("ke", 1).await, world.update("ke", 2).await, world.delete("ke").await), (409, 403, 403));
    assert_eq!(world.update("ke", 1).await, 200);
    assert_eq!(world.labels("ke").await, json!({"owner": "ke", "x": "y"}));
    assert_eq!(world.labels("hz").await, json!({"x": "y"}));
    assert_eq!(world.delete("ke").await, 200);
    assert_eq!(world.labels("ke").await, json!({"x": "y"}));
}

#[tokio::test]
async fn a_large_overlay_is_refused() {
    let world = World::new();
    known(&world).await;
    let mut large = class("ke", 1);
    large["metadata"]["annotations"] = json!({"a": "x".repeat(virtual_cluster::shared::MAX_OVERLAY)});
    let (code, message) = world.ask("ke", Method::POST, CLASSES, &large).await;
    assert_eq!(code, 422, "{message}");
    assert!(message.as_str().unwrap().contains("at most 524288 bytes"), "{message}");
    assert_eq!(world.memory.writes(), 0);
}

#[tokio::test]
async fn kinds_that_are_not_configured_are_not_written() {
    let world = World::new();
    known(&world).await;
    world.services.shared.exchange(&virtual_cluster::shared::config::SharedObjects::default());
    assert_eq!(world.create("ke", 1).await, 403);
    assert_eq!(world.memory.writes(), 0);
}

/// An API server sends its warnings also with an error.
#[tokio::test]
async fn a_refusal_has_the_warnings() {
    let world = World::new();
    known(&world).await;
    assert_eq!(world.create("ke", 1).await, 201);
    let cluster = world.cluster("hz");
    let mut call = authorised(&world.services, &cluster, &Method::POST, CLASSES, "application/yaml").await;
    let class = class("hz", 2).to_string();
    let yaml = format!("# not JSON\n{}, \"value\": 2}}", class.strip_suffix('}').unwrap());
    let Err(refusal) = carry_out(&mut call, &Body::Whole(yaml.into())).await else { panic!("it is not refused") };
    let mut log_metadata = LogMetadata::default();
    log_metadata.warned(call.shown_warnings());
    assert_eq!(status_of(refusal).0, 409);
    let mut refused = HeaderMap::new();
    log_metadata.write_refusal(&mut refused, "client");
    let warnings: Vec<_> = refused.get_all(header::WARNING).iter().map(|said| said.to_str().unwrap()).collect();
    assert!(matches!(warnings[..], [said] if said.starts_with("299 - ") && said.contains("value")), "{warnings:?}");
    // A warning of the host has names of the host.
    let of_host = Response::builder().header(header::WARNING, "299 - \"role vc:hz:a is unused\"");
    call.warn_like(&of_host.body(()).unwrap());
    assert_eq!(call.shown_warnings()[1], "299 - \"role a is unused\"");
}

/// The state of a request is moved when its task starts. The rare parts of the path are boxed, so that they do not count.
#[tokio::test]
async fn the_state_of_a_request_is_small() {
    let world = World::new();
    let cluster = world.cluster("hz");
    let mut call = authorised(&world.services, &cluster, &Method::GET, CLASSES, "application/json").await;
    let body = Body::Whole(Bytes::new());
    assert!(size_of_val(&*decide(&call, &body)) < 4096);
    assert!(size_of_val(&carry_out(&mut call, &body)) < 6144);
}
