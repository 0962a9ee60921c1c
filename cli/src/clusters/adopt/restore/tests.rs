use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use clap::Parser;
use host_client::in_memory::answered_by;
use http::{Method, Request, Response};
use ops::drain::Tasks;
use serde_json::json;

use super::*;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
const NAMESPACES: &str = "/api/v1/namespaces";

type Objects = Arc<Mutex<BTreeMap<String, Value>>>;

#[derive(clap::Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

/// What a restore of some objects has done.
struct Outcome {
    counts: Counts,
    printed: String,
    is_success: bool,
}

/// A host in memory. It has some resources, and refuses the dry run if it has the last policy.
fn host() -> (Api, Objects) {
    let objects = Objects::default();
    let listed = |resources: &[(&str, &str, bool)]| {
        let resources = resources.iter().map(|(name, kind, namespaced)| {
            json!({"name": name, "kind": kind, "namespaced": namespaced, "verbs": ["list", "create"]})
        });
        json!({"resources": resources.collect::<Vec<_>>()})
    };
    let group = |name: &str| json!({"preferredVersion": {"groupVersion": name}, "versions": [{"groupVersion": name}]});
    let groups = ["apps/v1", "rbac.authorization.k8s.io/v1", "scheduling.k8s.io/v1", "admissionregistration.k8s.io/v1"];
    for (path, object) in [
        ("/apis", json!({"groups": groups.map(group)})),
        ("/api/v1", listed(&[("namespaces", "Namespace", false), ("secrets", "Secret", true), ("pods", "Pod", true)])),
        ("/apis/apps/v1", listed(&[("deployments", "Deployment", true)])),
        ("/apis/rbac.authorization.k8s.io/v1", listed(&[("clusterroles", "ClusterRole", false)])),
        ("/apis/scheduling.k8s.io/v1", listed(&[("priorityclasses", "PriorityClass", false)])),
        (POLICIES, listed(&[("validatingadmissionpolicies", "ValidatingAdmissionPolicy", false)])),
        ("/version", json!({"major": "1", "minor": "35"})),
    ] {
        objects.lock().unwrap().insert(path.to_owned(), object);
    }
    let theirs = Arc::clone(&objects);
    let host = answered_by(Arc::new(move |request| answer(&theirs, request)), &Tasks::new());
    (Api::new(host), objects)
}

fn answer(objects: &Objects, request: &Request<Bytes>) -> Response<Bytes> {
    let mut objects = objects.lock().unwrap();
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let refused = |code: u16, reason: &str| {
        (code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}))
    };
    let (code, body) = match *request.method() {
        Method::GET => objects.get(path).map_or_else(|| refused(404, "NotFound"), |found| (200, found.clone())),
        Method::POST => {
            let object: Value = serde_json::from_slice(request.body()).unwrap();
            let path = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
            if objects.contains_key(&path) {
                refused(409, "AlreadyExists")
            } else if query.contains("dryRun") && objects.contains_key(&policy("probe.atoll.dev")) {
                let message =
                    "ValidatingAdmissionPolicy 'probe.atoll.dev' with binding 'probe.atoll.dev' denied request";
                (
                    403,
                    json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": message}),
                )
            } else if query.contains("dryRun") {
                (201, object)
            } else {
                objects.insert(path, object.clone());
                (201, object)
            }
        }
        _ => refused(405, "MethodNotAllowed"),
    };
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(body.to_string().into()).unwrap()
}

fn policy(name: &str) -> String {
    format!("{POLICIES}/validatingadmissionpolicies/{name}")
}

/// An agent has run on the host.
fn install_policies(objects: &Objects) {
    for name in ["namespaces.atoll.dev", "nodes.atoll.dev", "pods.atoll.dev", "probe.atoll.dev"] {
        let binding = json!({"spec": {"policyName": name, "validationActions": ["Deny"]}});
        let mut objects = objects.lock().unwrap();
        objects.insert(policy(name), json!({"spec": {"failurePolicy": "Fail"}}));
        objects.insert(format!("{POLICIES}/validatingadmissionpolicybindings/{name}"), binding);
    }
}

async fn restore(api: &Api, flags: &[&str], objects: &[Value]) -> Outcome {
    let fixed = ["adopt", "ke", "--host-kubeconfig", "x", "-f", "x"];
    let args = Cli::parse_from(fixed.iter().chain(flags)).args;
    assert_eq!(args.file, Some(PathBuf::from("x")));
    let resources = Resources::of(api, &[]).await.unwrap();
    let (mut restore, mut out) = (Restore::new(api, &args, Some("u"), resources), Vec::new());
    for object in objects {
        restore.object(object, &mut out).await.unwrap();
    }
    let code = restore.finish(&mut out).unwrap();
    let is_success = format!("{code:?}") == format!("{:?}", ExitCode::SUCCESS);
    Outcome { counts: restore.counts, printed: String::from_utf8(out).unwrap(), is_success }
}

fn shop() -> Value {
    let labels = json!({"atoll.dev/virtual-cluster": "ke", "atoll.dev/namespace": "shop"});
    let annotations = json!({"atoll.dev/node-selector": "a=b", "c": "d"});
    let metadata = json!({"name": "shop-ke", "labels": labels, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

fn within(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "shop-ke"}})
}

#[tokio::test]
async fn a_foreign_namespace_unlocks_nothing() {
    for flags in [&[][..], &["--dry-run"]] {
        let (api, objects) = host();
        install_policies(&objects);
        let foreign = json!({"metadata": {"name": "shop-ke", "uid": "u"}});
        objects.lock().unwrap().insert(format!("{NAMESPACES}/shop-ke"), foreign);
        let before = objects.lock().unwrap().clone();
        let file = [shop(), within("v1", "Secret"), within("apps/v1", "Deployment"), within("v1", "Pod")];
        let outcome = restore(&api, flags, &file).await;
        assert_eq!(outcome.counts, Counts { failed: 4, ..Counts::default() }, "{flags:?}");
        assert!(!outcome.is_success && !outcome.printed.contains("create "), "{}", outcome.printed);
        assert_eq!(*objects.lock().unwrap(), before, "{flags:?}");
    }
}

#[tokio::test]
async fn an_overlay_does_not_make_a_namespace_shared() {
    let (api, objects) = host();
    objects.lock().unwrap().insert(format!("{NAMESPACES}/shop-ke"), json!({"metadata": {"name": "shop-ke"}}));
    let mut namespace = shop();
    namespace["metadata"]["annotations"]["overlay.atoll.dev/ke"] = json!("{}");
    let outcome = restore(&api, &[], &[namespace, within("v1", "Secret")]).await;
    assert_eq!(outcome.counts, Counts { failed: 2, ..Counts::default() });
}

#[tokio::test]
async fn workloads_wait_for_the_admission_policies() {
    let (api, objects) = host();
    let file = [shop(), within("v1", "Secret"), within("apps/v1", "Deployment"), within("v1", "Pod")];
    let plan = restore(&api, &["--dry-run"], &file).await;
    assert!(plan.is_success && plan.printed.contains("when the agent runs, create Deployment shop-ke/a"));
    let outcome = restore(&api, &[], &file).await;
    assert_eq!(outcome.counts, Counts { created: 2, waiting: 2, ..Counts::default() });
    assert!(!outcome.is_success);
    let deployment = "/apis/apps/v1/namespaces/shop-ke/deployments/a";
    assert!(!objects.lock().unwrap().contains_key(deployment));
    let annotations = objects.lock().unwrap()[&format!("{NAMESPACES}/shop-ke")]["metadata"]["annotations"].clone();
    assert_eq!(annotations, json!({"c": "d"}));

    install_policies(&objects);
    let again = restore(&api, &[], &file).await;
    assert_eq!(again.counts, Counts { created: 2, present: 2, ..Counts::default() });
    assert!(again.is_success && objects.lock().unwrap().contains_key(deployment));
    // They stay, whatever happens to the policies.
    objects.lock().unwrap().remove(&policy("pods.atoll.dev"));
    let once_more = restore(&api, &[], &file).await;
    assert_eq!(once_more.counts, Counts { present: 4, ..Counts::default() });
}

#[tokio::test]
async fn a_policy_that_does_not_deny_is_not_in_force() {
    for (change, expected) in [
        (json!({"spec": {"policyName": "pods.atoll.dev", "validationActions": ["Deny"]}}), Policies::InForce),
        (json!({"spec": {"policyName": "pods.atoll.dev", "validationActions": ["Audit"]}}), Policies::Missing),
        (json!({"spec": {"policyName": "other", "validationActions": ["Deny"]}}), Policies::Missing),
    ] {
        let (api, objects) = host();
        install_policies(&objects);
        let path = format!("{POLICIES}/validatingadmissionpolicybindings/pods.atoll.dev");
        objects.lock().unwrap().insert(path, change.clone());
        assert_eq!(Policies::read(&api).await.unwrap(), expected, "{change}");
    }
    let (api, objects) = host();
    objects.lock().unwrap().remove(POLICIES);
    assert_eq!(Policies::read(&api).await.unwrap(), Policies::Unserved);
}

#[tokio::test]
async fn a_declaration_needs_its_flag() {
    let (api, objects) = host();
    let declaration = json!({"apiVersion": declared::API_VERSION, "kind": declared::KIND, "metadata": {"name": "ke"}});
    let outcome = restore(&api, &[], std::slice::from_ref(&declaration)).await;
    assert_eq!(outcome.counts, Counts { undeclared: 1, ..Counts::default() });
    assert!(outcome.is_success);
    let listed =
        json!({"name": "virtualclusters", "kind": declared::KIND, "namespaced": false, "verbs": ["list", "create"]});
    let group = json!({"preferredVersion": {"groupVersion": declared::API_VERSION}, "versions": [{"groupVersion": declared::API_VERSION}]});
    objects.lock().unwrap().insert("/apis".to_owned(), json!({"groups": [group]}));
    objects.lock().unwrap().insert(format!("/apis/{}", declared::API_VERSION), json!({"resources": [listed]}));
    let outcome = restore(&api, &["--with-declaration"], &[declaration]).await;
    assert_eq!(outcome.counts, Counts { created: 1, ..Counts::default() });
}

#[tokio::test]
async fn what_acts_on_the_host_is_not_created() {
    let (api, objects) = host();
    install_policies(&objects);
    let labels = json!({"atoll.dev/virtual-cluster": "ke", "rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "vc:ke:a", "labels": labels},
    });
    let shared = json!({"atoll.dev/shared": ""});
    let priority = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "globalDefault": true,
        "metadata": {"name": "high", "labels": shared, "annotations": {"overlay.atoll.dev/ke": "{}"}},
    });
    let mut deployment = within("apps/v1", "Deployment");
    deployment["spec"]["template"]["spec"] = json!({"containers": [], "nodeName": "n"});
    let root = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": "atoll-root-ke", "labels": {"atoll.dev/root": "ke"}, "annotations": {"atoll.dev/identity": "other"},
        },
    });
    for flags in [&["--dry-run"][..], &[]] {
        let file = [shop(), root.clone(), role.clone(), priority.clone(), deployment.clone()];
        let outcome = restore(&api, flags, &file).await;
        assert_eq!(outcome.counts, Counts { created: 1, failed: 4, ..Counts::default() }, "{flags:?}");
    }
    // The operator has created the class, so the virtual cluster can have a part of it.
    let class = json!({"metadata": {"annotations": {"overlay.atoll.dev/ke": "{}"}}});
    objects.lock().unwrap().insert("/apis/scheduling.k8s.io/v1/priorityclasses/high".to_owned(), class);
    let outcome = restore(&api, &[], &[priority]).await;
    assert_eq!(outcome.counts, Counts { present: 1, ..Counts::default() });
}
