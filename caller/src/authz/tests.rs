use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method};
use kube_wire::{RequestInfo, Target};
use protocol::identity::Identity;
use tokio::time::advance;

use super::*;
use crate::authn::{Authenticator, KnownCallers};
use crate::reviews::rules::NonResourceRule;
use crate::testing::{FakeHost, ke};

async fn caller(name: &str) -> Caller {
    let mut headers = HeaderMap::new();
    if !name.is_empty() {
        Identity { user: name.into(), groups: Vec::new(), uid: None, credential: None }.write(&mut headers);
    }
    Authenticator::new(Arc::new(FakeHost::default()))
        .authenticate(&ke(), &KnownCallers::new(ke().cluster().clone()), None, &mut headers)
        .await
        .unwrap()
}

fn listing<'a>(resource: &'a str, namespace: &'a HostNamespace) -> Attributes<'a> {
    Attributes { verb: "list", group: "", version: "v1", resource, subresource: "", name: "", namespace }
}

async fn is_allowed(authorizer: &Authorizer<Arc<FakeHost>>, caller: &Caller, namespace: &HostNamespace) -> bool {
    authorizer.check(&caller.host, &listing("nodes", namespace)).await.unwrap().allowed
}

const NODES: &str = "vc:ke:eve: list nodes./  in atoll-root-ke";

#[tokio::test(start_paused = true)]
async fn permissions_are_cached_longer_than_refusals() {
    let fake = FakeHost::allowing(&[NODES]);
    let authorizer = Authorizer::new(Arc::clone(&fake));
    let root = HostNamespace::root(&"ke".parse().unwrap());
    let (eve, bob) = (caller("eve").await, caller("bob").await);
    for _ in 0..2 {
        assert!(is_allowed(&authorizer, &eve, &root).await);
        assert!(!is_allowed(&authorizer, &bob, &root).await);
    }
    assert_eq!(fake.questions(), 2);
    advance(Duration::from_secs(1)).await;
    is_allowed(&authorizer, &eve, &root).await;
    is_allowed(&authorizer, &bob, &root).await;
    assert_eq!(fake.questions(), 3, "one second is enough for a no");
    advance(Duration::from_secs(4)).await;
    is_allowed(&authorizer, &eve, &root).await;
    assert_eq!(fake.questions(), 4, "and 4.75 s for a yes");
}

#[tokio::test(start_paused = true)]
async fn an_extended_permission_is_cached_while_its_condition_is_true() {
    let fake = FakeHost::allowing(&[NODES]);
    let authorizer = Authorizer::new(Arc::clone(&fake));
    let root = HostNamespace::root(&"ke".parse().unwrap());
    let (eve, bob) = (caller("eve").await, caller("bob").await);
    let is_current = Arc::new(AtomicBool::new(true));
    for (user, allowed) in [(&eve, true), (&bob, false)] {
        assert_eq!(is_allowed(&authorizer, user, &root).await, allowed);
        let is_current = Arc::clone(&is_current);
        let condition = move || is_current.load(Ordering::Relaxed);
        authorizer.extend(&user.host, &listing("nodes", &root), Arc::new(condition));
    }
    advance(Duration::from_secs(60)).await;
    // A change elsewhere.
    authorizer.forget(eve.host.cluster());
    assert!(is_allowed(&authorizer, &eve, &root).await);
    assert_eq!(authorizer.reviews_sent(), 2);
    assert!(!is_allowed(&authorizer, &bob, &root).await);
    assert_eq!(authorizer.reviews_sent(), 3, "a denial cannot be extended");
    is_current.store(false, Ordering::Relaxed);
    assert!(is_allowed(&authorizer, &eve, &root).await);
    assert_eq!(authorizer.reviews_sent(), 4);
    is_current.store(true, Ordering::Relaxed);
    authorizer.extend(&eve.host, &listing("nodes", &root), Arc::new(|| true));
    authorizer.flush(eve.host.cluster());
    assert!(is_allowed(&authorizer, &eve, &root).await);
    assert_eq!((authorizer.reviews_sent(), fake.questions()), (5, 5), "an RBAC write through the agent");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_not_cached_after_a_write() {
    let fake = FakeHost::allowing(&[]);
    let authorizer = Authorizer::new(Arc::clone(&fake));
    let root = HostNamespace::root(&"ke".parse().unwrap());
    let eve = caller("eve").await;
    assert!(!is_allowed(&authorizer, &eve, &root).await);
    authorizer.flush(&"hz".parse().unwrap());
    assert!(!is_allowed(&authorizer, &eve, &root).await);
    assert_eq!(fake.questions(), 1, "another cluster's write changes nothing");

    authorizer.flush(eve.host.cluster());
    assert!(authorizer.is_settling(eve.host.cluster()));
    for _ in 0..3 {
        assert!(!is_allowed(&authorizer, &eve, &root).await);
    }
    assert_eq!(fake.questions(), 4);
    fake.allowed.lock().unwrap().push(NODES.into());
    assert!(is_allowed(&authorizer, &eve, &root).await, "in force as soon as the host knows");

    advance(Duration::from_secs(2)).await;
    assert!(!authorizer.is_settling(eve.host.cluster()));
}

#[tokio::test]
async fn a_write_revokes_at_once() {
    let fake = FakeHost::allowing(&[NODES]);
    let authorizer = Authorizer::new(Arc::clone(&fake));
    let root = HostNamespace::root(&"ke".parse().unwrap());
    let eve = caller("eve").await;
    assert!(is_allowed(&authorizer, &eve, &root).await);
    fake.allowed.lock().unwrap().clear();
    authorizer.flush(eve.host.cluster());
    assert!(!is_allowed(&authorizer, &eve, &root).await);
}

#[tokio::test]
async fn answers_are_forgotten_without_a_write() {
    let fake = FakeHost::allowing(&[NODES]);
    let authorizer = Authorizer::new(Arc::clone(&fake));
    let root = HostNamespace::root(&"ke".parse().unwrap());
    let eve = caller("eve").await;
    assert!(is_allowed(&authorizer, &eve, &root).await);
    fake.allowed.lock().unwrap().clear();
    authorizer.forget(&"hz".parse().unwrap());
    assert!(is_allowed(&authorizer, &eve, &root).await, "another cluster's answers");
    authorizer.forget(eve.host.cluster());
    assert!(!is_allowed(&authorizer, &eve, &root).await);
    assert!(!authorizer.is_settling(eve.host.cluster()));
}

#[tokio::test]
async fn every_part_of_a_question_counts() {
    let (fake, eve) = (FakeHost::allowing(&[]), caller("eve").await);
    let authorizer = Authorizer::new(Arc::clone(&fake));
    let (root, edge) = ("atoll-root-ke".parse().unwrap(), "edge-ke".parse().unwrap());
    let base = listing("nodes", &root);
    for other in [
        base,
        Attributes { verb: "get", ..base },
        Attributes { group: "nodes", resource: "", ..base },
        Attributes { version: "v2", ..base },
        Attributes { subresource: "x", ..base },
        Attributes { name: "x", ..base },
        Attributes { namespace: &edge, ..base },
    ] {
        authorizer.check(&eve.host, &other).await.unwrap();
    }
    assert_eq!(fake.questions(), 7);
}

#[tokio::test]
async fn a_denial_has_virtual_names() {
    let authorizer = Authorizer::new(FakeHost::allowing(&[]));
    let eve = caller("eve").await;
    for (namespace, place) in [("atoll-root-ke", "at the cluster scope"), ("edge-ke", r#"in the namespace "edge""#)] {
        let namespace = namespace.parse().unwrap();
        let attributes = Attributes { name: "edge-ke", ..listing("nodes", &namespace) };
        let status = Status::from(authorizer.demand(&ke(), &eve, &attributes).await.unwrap_err());
        assert_eq!(status.code, 403);
        let sentence = r#"nodes "edge" is forbidden: User "eve" cannot list resource "nodes" in API group """#;
        assert_eq!(status.message, format!("{sentence} {place}"));
    }
}

#[tokio::test]
async fn errors_of_the_host_are_503_and_not_cached() {
    let fake = Arc::new(FakeHost { fails: true, ..FakeHost::default() });
    let authorizer = Authorizer::new(Arc::clone(&fake));
    let (eve, root) = (caller("eve").await, "atoll-root-ke".parse().unwrap());
    for _ in 0..2 {
        let refused = authorizer.demand(&ke(), &eve, &listing("nodes", &root)).await.unwrap_err();
        assert_eq!(Status::from(refused).code, 503);
    }
    assert_eq!(fake.questions(), 2);
}

#[tokio::test]
async fn each_path_has_its_class() {
    let rule = NonResourceRule { verbs: vec!["get".into()], non_resource_urls: vec!["*".into()] };
    let rules = Rules { non_resource_rules: vec![rule], ..Rules::default() };
    let generous = Authorizer::new(Arc::new(FakeHost { rules, ..FakeHost::default() }));
    let strict = Authorizer::new(FakeHost::allowing(&[]));
    let (eve, nobody) = (caller("eve").await, caller("").await);
    for (path, [by_nobody, by_eve, by_rule]) in [
        ("/healthz", [true, true, true]),
        ("/apis", [false, true, true]),
        ("/openid/v1/jwks", [false, false, true]),
        ("/metrics", [false, false, false]),
    ] {
        let info = RequestInfo::parse(&Method::GET, path, None).unwrap();
        let Target::NonResource(request) = info.target() else { panic!("{path} is no resource") };
        assert_eq!(strict.non_resource(&nobody, request).await.is_ok(), by_nobody, "{path}");
        assert_eq!(strict.non_resource(&eve, request).await.is_ok(), by_eve, "{path}");
        assert_eq!(generous.non_resource(&eve, request).await.is_ok(), by_rule, "{path}");
    }
    let info = RequestInfo::parse(&Method::GET, "/metrics", None).unwrap();
    let Target::NonResource(request) = info.target() else { panic!() };
    let status = Status::from(strict.non_resource(&nobody, request).await.unwrap_err());
    assert_eq!(status.message, r#"forbidden: User "system:anonymous" cannot get path "/metrics""#);
}
