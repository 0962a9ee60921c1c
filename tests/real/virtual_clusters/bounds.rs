//! Small requests that need much work: none of them blocks the agent or the host.

use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::curl::{Curl, Response};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::admission_policies::direct_user;
use super::{BEIJING, HANGZHOU, namespace};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// The time limit of a response, in seconds. Without limits, some of these requests would take minutes.
const RESPONSE_TIMEOUT: &str = "10";

/// The time limit for a change of large mirrors in hundreds of namespaces.
const IN_ALL: Duration = Duration::from_secs(120);

/// The maximum size of a response, in bytes.
const ANSWER: usize = 64 << 10;

/// A user of `cluster` with a short timeout.
fn user(site: &VirtualSite, cluster: &str, name: &str) -> anyhow::Result<Curl> {
    Ok(site.curl_like(&site.user(cluster, name)?, cluster, Route::Path)?.with(&["--max-time", RESPONSE_TIMEOUT]))
}

fn send(curl: &Curl, method: &str, path: &str, body: &Value) -> anyhow::Result<Response> {
    let response = curl.send(method, path, &body.to_string())?;
    ensure!(response.body.len() < ANSWER, "{method} {path}: an response of {} bytes", response.body.len());
    Ok(response)
}

/// `count` different texts.
fn texts(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

pub(super) fn groups_of_a_review_are_few(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(HANGZHOU, Route::Path)?;
    let admin = site.curl_like(&kubectl, HANGZHOU, Route::Path)?.with(&["--max-time", RESPONSE_TIMEOUT]);
    let anybody = user(site, HANGZHOU, "bounds-anybody")?;
    let attributes = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    let review = |groups: usize| {
        json!({"apiVersion": "authorization.k8s.io/v1",
            "spec": {"user": "somebody", "groups": texts("", groups), "resourceAttributes": attributes}})
    };
    // A self review has no groups.
    let path = format!("{REVIEWS}/selfsubjectaccessreviews");
    for (groups, who, allowed) in [(50_000, &anybody, false), (50_000, &admin, true), (0, &admin, true)] {
        let response = send(who, "POST", &path, &review(groups)).with_context(|| format!("{groups} groups"))?;
        ensure!(response.code == 201 && response.json()?["status"]["allowed"] == allowed, "{:.300}", response.body);
    }
    let path = format!("{REVIEWS}/subjectaccessreviews");
    ensure!(send(&admin, "POST", &path, &review(1000))?.code == 201);
    let why = r#"SubjectAccessReview.authorization.k8s.io "" is invalid: spec.groups: Too many: 1001: must have at most 1000 items"#;
    send(&admin, "POST", &path, &review(1001))?.refused(422, "Invalid", why)?;
    send(&admin, "POST", &path, &review(50_000))?.refused(422, "Invalid", "spec.groups: Too many: 50000")?;
    Ok(())
}

pub(super) fn requirements_of_a_selector_are_few(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(HANGZHOU, Route::Path)?;
    let admin = site.curl_like(&kubectl, HANGZHOU, Route::Path)?.with(&["--max-time", RESPONSE_TIMEOUT]);
    let without = |count: usize| texts("!k", count).join(",");
    let shared = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let why = "ListOptions.meta.k8s.io \"\" is invalid: labelSelector: Too many: 8000: must have at most 1000 items";
    for path in [format!("{RBAC}/clusterroles"), shared.to_owned()] {
        let select = |selector: &str| admin.get(&format!("{path}?labelSelector={selector}"));
        select(&without(8000))?.refused(422, "Invalid", why)?;
        for selector in [without(1000), vec!["!k"; 20_000].join(",")] {
            let response = select(&selector)?;
            ensure!(response.code == 200, "{path}: {:.300}", response.body);
        }
    }
    // The host evaluates the other selectors.
    let response = admin.get(&format!("/api/v1/namespaces/default/configmaps?labelSelector={}", without(4000)))?;
    ensure!(response.code == 200, "{:.300}", response.body);
    Ok(())
}

pub(super) fn a_refusal_names_few_rules(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Path)?;
    admin.ok(&["create", "clusterrole", "bounds-writer", "--verb=create", "--resource=clusterroles"])?;
    admin.ok(&[
        "create",
        "clusterrolebinding",
        "bounds-writer",
        "--clusterrole=bounds-writer",
        "--user=bounds-writer",
    ])?;
    let writer = user(site, BEIJING, "bounds-writer")?;
    let rule = json!({"verbs": texts("verb", 99), "nonResourceURLs": texts("/path", 100)});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "bounds-paths"}, "rules": [rule]});
    let status = send(&writer, "POST", &format!("{RBAC}/clusterroles"), &role)?;
    let status = status.refused(403, "Forbidden", "is attempting to grant RBAC permissions not currently held:\n")?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(message.lines().count() == 102 && message.ends_with("\n(and more)"), "{message}");
    admin.ok(&["delete", "clusterrolebinding,clusterrole", "bounds-writer"])?;
    Ok(())
}

pub(super) fn what_a_role_grants_is_bounded(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(HANGZHOU, Route::Path)?;
    let admin = site.curl_like(&kubectl, HANGZHOU, Route::Path)?.with(&["--max-time", RESPONSE_TIMEOUT]);
    kubectl.ok_with(&["create", "-f", "-"], &namespace("bounds-roles"))?;
    // With lists that are twenty times as long, the API server would run out of memory.
    let many = json!([{"verbs": texts("v", 22), "apiGroups": texts("g", 22), "resources": texts("r", 21)}]);
    let few = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]);
    let of = |kind: &str, name: &str, rules: &Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rules});
    for (kind, path) in
        [("Role", format!("{RBAC}/namespaces/bounds-roles/roles")), ("ClusterRole", format!("{RBAC}/clusterroles"))]
    {
        let response = send(&admin, "POST", &path, &of(kind, "bounds-few", &few))?;
        ensure!(response.code == 201, "{}", response.body);
        let one = format!("{path}/bounds-few");
        let json_patch = json!([{"op": "add", "path": "/rules/0", "value": many[0]}]);
        let merge = json!({"rules": many});
        let applied = format!("{path}/bounds-applied?fieldManager=bounds");
        for (method, path, media, body) in [
            ("POST", &path, "application/json", &of(kind, "bounds-many", &many)),
            ("PUT", &one, "application/json", &of(kind, "bounds-few", &many)),
            ("PATCH", &one, "application/merge-patch+json", &merge),
            ("PATCH", &one, "application/strategic-merge-patch+json", &merge),
            ("PATCH", &one, "application/json-patch+json", &json_patch),
            ("PATCH", &applied, "application/apply-patch+yaml", &of(kind, "bounds-applied", &many)),
        ] {
            let response = admin.send_as(method, path, media, &body.to_string())?;
            let refused = response.refused(422, "Invalid", "rules[0]: Too many: 10164: must grant at most 10000");
            refused.with_context(|| format!("{method} {path} as {media}"))?;
        }
    }
    // The largest ClusterRole that every cluster has.
    let role: Value = serde_json::from_str(&kubectl.ok(&["get", "clusterrole", "admin", "-o", "json"])?)?;
    let role = of("ClusterRole", "bounds-admin", &role["rules"]);
    let response = admin.send("POST", &format!("{RBAC}/clusterroles"), &role.to_string())?;
    ensure!(response.code == 201, "{}", response.body);
    kubectl.ok(&["delete", "clusterrole", "bounds-few", "bounds-admin"])?;
    kubectl.ok(&["delete", "namespace", "bounds-roles", "--wait=false"])?;
    Ok(())
}

/// Existing bindings are mirrored, whatever their number.
pub(super) fn subjects_of_a_binding_are_bounded(site: &VirtualSite) -> anyhow::Result<()> {
    const NAME: &str = "bounds-subjects";
    let (host, kubectl) = (site.host().kubectl(), site.administrator(HANGZHOU, Route::Path)?);
    let admin = site.curl_like(&kubectl, HANGZHOU, Route::Path)?;
    let binding = |kind: &str, metadata: Value, subjects: usize| {
        let (role, namespace) = match kind {
            "RoleBinding" => (format!("vc:{HANGZHOU}:view"), format!("b-{HANGZHOU}")),
            _ => ("view".to_owned(), "b".to_owned()),
        };
        let account = json!({"kind": "ServiceAccount", "name": "a", "namespace": namespace});
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "roleRef": role,
            "subjects": vec![account; subjects]})
    };
    let path = format!("{RBAC}/clusterrolebindings");
    let create = |subjects| {
        let binding = binding("ClusterRoleBinding", json!({"name": NAME}), subjects);
        admin.send("POST", &format!("{path}?dryRun=All"), &binding.to_string())
    };
    let many =
        "this ClusterRoleBinding has 2001 subjects, and the limit is 2000; split it into several, or bind groups";
    create(2_001)?.refused(413, "RequestEntityTooLarge", many)?;
    create(30_000)?.refused(413, "RequestEntityTooLarge", "the object has too many fields")?;
    let response =
        admin.send("POST", &path, &binding("ClusterRoleBinding", json!({"name": NAME}), 2_000).to_string())?;
    ensure!(response.code == 201, "{:.300}", response.body);
    kubectl.ok(&["delete", "clusterrolebinding", NAME])?;

    // An object that an earlier version accepted.
    let accepted = |finalizers: Value, subjects: usize| {
        let root = format!("atoll-root-{HANGZHOU}");
        let labels = json!({"atoll.dev/virtual-cluster": HANGZHOU});
        let metadata = json!({"name": NAME, "namespace": root, "labels": labels, "finalizers": finalizers});
        host.ok_with(&["create", "-f", "-"], &binding("RoleBinding", metadata, subjects).to_string())
    };
    let mirrors = |count: usize| {
        let all = host.ok(&["get", "rolebindings", "-A", "-l", "atoll.dev/mirror", "-o", "name"])?;
        let found = all.lines().filter(|line| line.ends_with(&format!(":{NAME}"))).count();
        ensure!(if count == 0 { found == 0 } else { found >= count }, "{found} mirrors");
        Ok(())
    };
    accepted(json!(["example.com/bounds"]), 2_002)?;
    eventually(IN_ALL, || mirrors(4)).context("it is not mirrored")?;
    let patch = |kind: &str, patch: &str| kubectl.run(&["patch", "clusterrolebinding", NAME, kind, "-p", patch]);
    let account = r#"[{"op":"add","path":"/subjects/-","value":{"kind":"ServiceAccount","name":"a","namespace":"b"}}]"#;
    let grown = patch("--type=json", account)?;
    ensure!(grown.code != 0 && grown.stderr.contains("has 2003 subjects, and the limit is 2000"), "{grown:?}");
    for (kind, change) in [
        ("--type=merge", r#"{"metadata":{"labels":{"a":"b"}}}"#),
        ("--type=json", r#"[{"op":"remove","path":"/subjects/0"}]"#),
        ("--type=merge", r#"{"metadata":{"finalizers":null}}"#),
    ] {
        let changed = patch(kind, change)?;
        ensure!(changed.code == 0, "{change}: {changed:?}");
    }
    kubectl.ok(&["delete", "clusterrolebinding", NAME])?;
    eventually(IN_ALL, || mirrors(0)).context("its mirrors are not deleted")?;

    accepted(json!([]), 5_000)?;
    eventually(IN_ALL, || mirrors(4)).context("it is not mirrored")?;
    kubectl.ok(&["delete", "clusterrolebinding", NAME])?;
    eventually(IN_ALL, || mirrors(0)).context("its mirrors are not deleted")
}

/// With a token at the host, if its policies can refuse the request.
pub(super) fn what_a_role_grants_directly(site: &VirtualSite) -> anyhow::Result<()> {
    const NAME: &str = "bounds-directly";
    if everywhere_kubeedge() {
        return Ok(());
    }
    let direct = direct_user(site, NAME)?;
    let host = format!("{NAME}-{BEIJING}");
    let metadata = json!({"name": "many", "namespace": host});
    let create = |metadata: &Value, rules: &Value| {
        let role =
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules});
        direct.run_with(&["create", "-f", "-"], &role.to_string())
    };
    let many = |resources: usize| json!([{"verbs": texts("v", 10), "apiGroups": texts("g", 10), "resources": texts("r", resources)}]);
    for rules in [many(101), json!([many(100)[0], {"verbs": ["get"], "nonResourceURLs": ["/a"]}])] {
        let output = create(&metadata, &rules)?;
        let refused = output.code != 0 && output.stderr.contains("policy 'roles.atoll.dev'");
        ensure!(refused && output.stderr.contains("must grant at most 10000 combinations"), "{output:?}");
    }
    let output = create(&metadata, &many(100))?;
    ensure!(output.code == 0, "{output:?}");
    let output = create(&json!({"name": "none", "namespace": host}), &Value::Null)?;
    ensure!(output.code == 0, "an empty role is refused: {output:?}");
    let output =
        create(&json!({"name": "no-verbs", "namespace": host}), &json!([{"apiGroups": [""], "resources": ["a"]}]))?;
    ensure!(output.stderr.contains("is invalid: rules[0].verbs: Required value"), "{output:?}");
    let patch = json!({"rules": many(101)}).to_string();
    let output = direct.run(&["patch", "role", "many", "-n", &host, "--type=merge", "-p", &patch])?;
    ensure!(output.code != 0 && output.stderr.contains("must grant at most 10000 combinations"), "{output:?}");
    site.administrator(BEIJING, Route::Proxy)?.ok(&["delete", "namespace", NAME, "--wait=false"])?;
    Ok(())
}

pub(super) fn aggregation_delays_nobody(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(HANGZHOU, Route::Path)?;
    let admin = site.curl_like(&kubectl, HANGZHOU, Route::Path)?.with(&["--max-time", RESPONSE_TIMEOUT]);
    let path = format!("{RBAC}/clusterroles");
    let of = |name: &str, rules: &Value| {
        let metadata = json!({"name": name, "labels": {"bounds": "part"}});
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules})
    };
    let mut sum = of("bounds-sum", &json!([]));
    sum["metadata"]["labels"] = json!({});
    sum["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"bounds": "part"}}]});
    ensure!(send(&admin, "POST", &path, &sum)?.code == 201);
    let parts = texts("bounds-part-", 4);
    for part in &parts {
        let resources = texts(part, 5000).into_iter();
        let rules = resources.map(|of| json!({"verbs": ["get"], "apiGroups": [""], "resources": [of]})).collect();
        let response = admin.send("POST", &path, &of(part, &rules).to_string())?;
        ensure!(response.code == 201, "{}: {:.300}", response.code, response.body);
    }
    // A comparison of all rules with each other would take longer than the timeout of clients.
    for _ in 0..100 {
        let response = admin.get("/api/v1/namespaces/default")?;
        ensure!(response.code == 200, "{}: {:.300}", response.code, response.body);
    }
    // The aggregated role omits rules above the limit, and has the others.
    let rules = || -> anyhow::Result<usize> {
        let role = admin.get(&format!("{path}/bounds-sum"))?.json()?;
        Ok(role["rules"].as_array().map_or(0, Vec::len))
    };
    let most = rules()?;
    ensure!(most <= 10_000, "{most}");
    for part in &parts[1..] {
        ensure!(admin.send("DELETE", &format!("{path}/{part}"), "")?.code == 200);
    }
    eventually(CONDITION_TIMEOUT, || {
        let rules = rules()?;
        ensure!(rules == 5000, "{rules}");
        Ok(())
    })?;
    let large = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["x".repeat(600 << 10)]}]);
    let why = "and the limit is 524288; split it into several";
    send(&admin, "POST", &path, &of("bounds-large", &large))?.refused(413, "RequestEntityTooLarge", why)?;
    kubectl.ok(&["delete", "clusterrole", "bounds-sum", &parts[0]])?;
    Ok(())
}

pub(super) fn no_directive_hides_a_role(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Path)?;
    let admin = site.curl_like(&kubectl, BEIJING, Route::Path)?.with(&["--max-time", RESPONSE_TIMEOUT]);
    kubectl.ok(&["create", "clusterrole", "bounds-hidden", "--verb=get", "--resource=configmaps"])?;
    let path = format!("{RBAC}/clusterroles/bounds-hidden");
    let media = "application/strategic-merge-patch+json";
    for patch in [
        json!({"metadata": {"$patch": "replace", "name": "bounds-hidden"}}),
        json!({"metadata": {"$retainKeys": ["name"], "name": "bounds-hidden"}}),
        json!({"metadata": {"labels": {"$patch": "replace"}}}),
        json!({"metadata": {"annotations": {"$patch": "replace"}}}),
        json!({"$patch": "replace", "metadata": {"name": "bounds-hidden"}}),
    ] {
        let response = admin.send_as("PATCH", &path, media, &patch.to_string())?;
        response
            .refused(400, "BadRequest", "support neither $patch nor $retainKeys")
            .with_context(|| patch.to_string())?;
        let response = admin.get(&path)?;
        ensure!(response.code == 200, "{patch}: {}", response.body);
    }
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    ensure!(admin.send_as("PATCH", &path, media, &labels.to_string())?.code == 200);
    ensure!(admin.get(&path)?.json()?["metadata"]["labels"] == json!({"a": "b"}));
    kubectl.ok(&["delete", "clusterrole", "bounds-hidden"])?;
    Ok(())
}
