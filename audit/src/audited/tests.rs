use std::path::Path;

use http::Request;
use ops::files::Watched;
use ops::metrics::{Build, Registry};
use serde_json::{Value, json};

use super::*;
use crate::budget::Budget;
use crate::config::Audit;
use crate::lost::Lost;
use crate::metrics::{LOG, Metrics, OfCluster};
use crate::policy::Policy;
use crate::queue::{Queued, queue};

/// A log of all stages.
fn auditor() -> (Arc<Auditor>, Queued) {
    with_policy("rules: [{level: Metadata}]")
}

fn with_policy(rules: &str) -> (Arc<Auditor>, Queued) {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    let policy = Watched::fixed(Policy::parse(text.as_bytes(), Path::new("policy.yaml")).unwrap());
    let metrics = Metrics::new(&Registry::new(Build { component: "test", version: "0" }));
    let cluster: Arc<str> = "ke-beijing".into();
    let (log, queued) = queue(100, Budget::of_memory(None).account(), Arc::new(Lost::new(&metrics, &cluster, LOG)));
    let events = metrics.events.with(&OfCluster { cluster: Arc::clone(&cluster) });
    let settings = Audit::default();
    (Arc::new(Auditor { cluster, settings, policy, log: Some(log), webhook: None, events }), queued)
}

fn begin(auditor: &Arc<Auditor>, method: &str, uri: &str, headers: &[(&str, &str)]) -> Box<Audited> {
    let request =
        headers.iter().fold(Request::builder().method(method).uri(uri), |b, (name, value)| b.header(*name, *value));
    let request = request.body(()).unwrap();
    let info = RequestInfo::parse(request.method(), request.uri().path(), request.uri().query()).ok();
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    let remote = Some("192.0.2.1".parse().unwrap());
    Audited::begin(Arc::clone(auditor), Received { method, uri, headers, info: info.as_ref(), remote })
}

fn jane() -> UserInfo {
    UserInfo { username: "jane".into(), groups: vec!["system:authenticated".into()], ..UserInfo::default() }
}

/// All events, without their times.
fn events(queued: &mut Queued) -> Vec<Value> {
    let mut lines = Vec::new();
    queued.take_now(&mut lines, usize::MAX);
    let mut events: Vec<Value> = lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
    for event in &mut events {
        for key in ["requestReceivedTimestamp", "stageTimestamp"] {
            let time = event.as_object_mut().unwrap().remove(key).unwrap();
            let form: String =
                time.as_str().unwrap().chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            assert_eq!(form, "0000-00-00T00:00:00.000000Z");
        }
    }
    events
}

fn stages(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["stage"].as_str().unwrap()).collect()
}

#[test]
fn a_read_has_two_events() {
    let (auditor, mut queued) = auditor();
    let headers = [("audit-id", "chosen"), ("user-agent", "kubectl/v1"), ("x-forwarded-for", "10.0.0.1")];
    let mut audited = begin(&auditor, "GET", "/api/v1/namespaces/shop/pods/web?pretty=1", &headers);
    audited.identified(jane());
    audited.responded(&HeaderMap::new(), Some("other".to_owned()));
    assert!(events(&mut queued).is_empty(), "the user is not known before the response");
    audited.answered(StatusCode::OK);
    drop(audited);
    let mut expected = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "chosen",
        "stage": "RequestReceived", "requestURI": "/api/v1/namespaces/shop/pods/web?pretty=1", "verb": "get",
        "user": {"username": "jane", "groups": ["system:authenticated"]}, "sourceIPs": ["10.0.0.1", "192.0.2.1"],
        "userAgent": "kubectl/v1",
        "objectRef": {"resource": "pods", "namespace": "shop", "name": "web", "apiVersion": "v1"},
        "annotations": {"atoll.dev/cluster": "ke-beijing"},
    });
    let received = expected.clone();
    expected["stage"] = "ResponseComplete".into();
    expected["responseStatus"] = json!({"metadata": {}, "code": 200});
    assert_eq!(events(&mut queued), [received, expected]);
}

#[test]
fn a_watch_has_an_event_when_it_starts() {
    let (auditor, mut queued) = auditor();
    let mut audited = begin(&auditor, "GET", "/apis/apps/v1/deployments?watch=1", &[]);
    audited.identified(jane());
    audited.answered(StatusCode::OK);
    let begun = events(&mut queued);
    assert_eq!(stages(&begun), ["RequestReceived", "ResponseStarted"]);
    assert_eq!(begun[1]["objectRef"], json!({"resource": "deployments", "apiGroup": "apps", "apiVersion": "v1"}));
    drop(audited);
    assert_eq!(stages(&events(&mut queued)), ["ResponseComplete"]);
}

#[test]
fn the_agent_knows_who_and_what() {
    let (auditor, mut queued) = auditor();
    let mut headers = HeaderMap::new();
    audit::write(&mut headers, audit::USER, &jane());
    let joe = UserInfo { username: "joe".into(), ..UserInfo::default() };
    audit::write(&mut headers, audit::IMPERSONATED, &joe);
    let facts = ObjectFacts { name: "web".into(), resource_version: "7".into(), ..ObjectFacts::default() };
    audit::write(&mut headers, audit::OBJECT, &facts);
    let status = Status::failure(409, kube_wire::status::Reason::AlreadyExists, "exists");
    audit::write_json(&mut headers, audit::STATUS, std::str::from_utf8(&status.to_json()).unwrap());
    let mut audited = begin(&auditor, "POST", "/api/v1/namespaces/shop/pods", &[]);
    audited.responded(&headers, None);
    audited.answered(StatusCode::CONFLICT);
    drop(audited);
    let events = events(&mut queued);
    assert_eq!(events[0]["objectRef"].get("name"), None);
    assert_eq!((&events[0]["user"]["username"], events[0].get("impersonatedUser")), (&json!("jane"), None));
    let object =
        json!({"resource": "pods", "namespace": "shop", "name": "web", "apiVersion": "v1", "resourceVersion": "7"});
    assert_eq!(events[1]["objectRef"], object);
    assert_eq!(events[1]["impersonatedUser"], json!({"username": "joe"}));
    let status =
        json!({"metadata": {}, "status": "Failure", "message": "exists", "reason": "AlreadyExists", "code": 409});
    assert_eq!(events[1]["responseStatus"], status);
}

#[test]
fn a_request_without_a_user_has_one_event() {
    let (auditor, mut queued) = auditor();
    let mut audited = begin(&auditor, "GET", "/api", &[]);
    audited.refused(&Status::unauthorized("Unauthorized"));
    audited.answered(StatusCode::UNAUTHORIZED);
    drop(audited);
    let events = events(&mut queued);
    assert_eq!((stages(&events), &events[0]["user"]), (vec!["ResponseStarted"], &json!({})));
    assert_eq!(events[0]["responseStatus"]["reason"], "Unauthorized");
    // The server of a pod can respond with 401, too.
    let mut proxied = begin(&auditor, "GET", "/api/v1/namespaces/n/pods/p/proxy/", &[]);
    proxied.identified(jane());
    proxied.answered(StatusCode::UNAUTHORIZED);
    drop(proxied);
    let events = self::events(&mut queued);
    assert_eq!(stages(&events), ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
}

#[test]
fn a_request_without_a_response_was_closed_early() {
    let (auditor, mut queued) = auditor();
    drop(begin(&auditor, "GET", "/api/v1/pods?watch=true", &[]));
    let events = events(&mut queued);
    assert_eq!(stages(&events), ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
    assert_eq!(events[2]["responseStatus"]["message"], "Connection closed early");
}

#[test]
fn the_policy_sees_the_user_and_not_the_impersonated_one() {
    let (auditor, mut queued) = with_policy(
        "omitStages: [RequestReceived]\nrules: [{level: None, users: [joe]}, {level: Metadata, users: [jane]}]",
    );
    let mut headers = HeaderMap::new();
    audit::write(&mut headers, audit::USER, &jane());
    audit::write(&mut headers, audit::IMPERSONATED, &UserInfo { username: "joe".into(), ..UserInfo::default() });
    let mut audited = begin(&auditor, "GET", "/version", &[]);
    audited.responded(&headers, None);
    audited.answered(StatusCode::OK);
    drop(audited);
    let events = events(&mut queued);
    assert_eq!((stages(&events), events[0].get("objectRef")), (vec!["ResponseComplete"], None));
    drop(begin(&auditor, "GET", "/version", &[]));
    assert!(self::events(&mut queued).is_empty());
}

#[test]
fn ids_are_uuids_unless_the_client_has_chosen_one() {
    let (auditor, _queued) = auditor();
    let of = |chosen: &str| {
        let mut headers = HeaderMap::new();
        begin(&auditor, "GET", "/", &[("audit-id", chosen)]).identify(&mut headers);
        headers[AUDIT_ID].to_str().unwrap().to_owned()
    };
    assert_eq!(of("abc-123"), "abc-123");
    for chosen in ["", &"a".repeat(MAX_ID + 1)] {
        let id = of(chosen);
        let form: String = id.chars().map(|c| if c.is_ascii_hexdigit() { 'x' } else { c }).collect();
        assert_eq!(form, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
        assert!(id.as_bytes()[14] == b'4' && b"89ab".contains(&id.as_bytes()[19]), "{id}");
    }
    let long = begin(&auditor, "GET", "/", &[("user-agent", &"é".repeat(600))]);
    assert_eq!(long.user_agent, format!("{}...TRUNCATED", "é".repeat(512)));
}

#[test]
fn the_agent_does_not_change_a_user_that_is_proven() {
    let (auditor, mut queued) = with_policy("omitStages: [RequestReceived]\nrules: [{level: Metadata}]");
    let mut headers = HeaderMap::new();
    let other = UserInfo { username: "other".into(), groups: vec!["g".repeat(40_000)], ..UserInfo::default() };
    audit::write(&mut headers, audit::USER, &other);
    let mut audited = begin(&auditor, "GET", "/version", &[]);
    audited.identified(jane());
    audited.responded(&headers, Some("other".to_owned()));
    audited.answered(StatusCode::OK);
    drop(audited);
    let event = &events(&mut queued)[0];
    assert_eq!(event["user"], json!({"username": "jane", "groups": ["system:authenticated"]}));
    assert_eq!(event["annotations"], json!({"atoll.dev/cluster": "ke-beijing"}));
}

#[test]
fn long_fields_are_cut_and_named() {
    let (auditor, mut queued) = auditor();
    let long = "n".repeat(MAX_FIELD + 1);
    let mut headers = HeaderMap::new();
    let groups = (0..250).map(|number| format!("{number:0200}")).collect();
    audit::write(&mut headers, audit::USER, &jane());
    audit::write(&mut headers, audit::IMPERSONATED, &UserInfo { username: "alice".into(), groups, ..jane() });
    let mut audited = begin(&auditor, "GET", &format!("/api/v1/namespaces/shop/pods/{long}?pretty=1"), &[]);
    audited.responded(&headers, None);
    audited.answered(StatusCode::OK);
    drop(audited);
    let events = events(&mut queued);
    assert_eq!(events[1]["requestURI"].as_str().map(str::len), Some(MAX_FIELD));
    assert_eq!(events[1]["objectRef"]["name"].as_str().map(str::len), Some(MAX_FIELD));
    assert_eq!(events[1]["impersonatedUser"], json!({"username": "alice"}));
    let marks = |event: &Value| event["annotations"]["atoll.dev/truncated"].clone();
    assert_eq!(marks(&events[0]), "objectRef.name,requestURI");
    assert_eq!(marks(&events[1]), "impersonatedUser,objectRef.name,requestURI");
}
