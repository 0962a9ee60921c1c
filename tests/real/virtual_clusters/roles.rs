//! ClusterRoles and ClusterRoleBindings apply only in their virtual cluster, and grant no more than the rights of their
//! writers.

use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::{CONDITION_TIMEOUT, Kubectl};
use atoll_tests::{Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU, namespace};

/// The time limit until a revoked right has ended.
const REVOKED: Duration = Duration::from_secs(5);

fn json_of(kubectl: &Kubectl, args: &[&str]) -> anyhow::Result<Value> {
    let text = kubectl.ok(&[args, &["-o", "json"]].concat())?;
    serde_json::from_str(&text).with_context(|| text)
}

fn names(kubectl: &Kubectl, kind: &str) -> anyhow::Result<Vec<String>> {
    Ok(kubectl.ok(&["get", kind, "-o", "name"])?.lines().map(str::to_owned).collect())
}

/// Rights on the host that no virtual cluster may have.
pub(crate) fn of_the_host(host: &Kubectl) -> anyhow::Result<[Value; 2]> {
    let roles = json_of(host, &["get", "clusterroles", "view", "edit", "admin"])?;
    Ok([roles["items"].clone(), json_of(host, &["get", "clusterrolebindings"])?["items"].clone()])
}

/// Waits until the controller of the host has processed all previous changes. It processes them in order.
pub(crate) fn aggregated(host: &Kubectl) -> anyhow::Result<()> {
    let own_aggregate = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"operators"},
"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"example.com/operators":"true"}}]},"rules":[]}"#;
    host.ok_with(&["create", "-f", "-"], own_aggregate)?;
    let rules = json!([{"apiGroups": ["example.com"], "resources": ["gadgets"], "verbs": ["get"]}]);
    let control = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": rules,
        "metadata": {"name": "control", "labels": {"example.com/operators": "true"}}});
    host.ok_with(&["create", "-f", "-"], &control.to_string())?;
    eventually(CONDITION_TIMEOUT, || {
        let found = json_of(host, &["get", "clusterrole", "operators"])?;
        ensure!(found["rules"] == rules, "{found}");
        Ok(())
    })?;
    host.ok(&["delete", "clusterrole", "operators", "control"])?;
    Ok(())
}

pub(super) fn a_binding_holds_everywhere_and_at_once(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let (rosa, namesake) = (site.user(BEIJING, "rosa")?, site.user(HANGZHOU, "rosa")?);
    let neighbour = site.administrator(HANGZHOU, Route::Path)?;
    let host = site.host().kubectl();
    let before = of_the_host(&host)?;
    admin.ok_with(&["create", "-f", "-"], &namespace("roles-before"))?;
    rosa.fails(&["get", "configmaps", "-n", "roles-before"])?;

    admin.ok(&["create", "clusterrole", "rosas", "--verb=get,list", "--resource=configmaps,nodes"])?;
    admin.ok(&["create", "clusterrolebinding", "rosas", "--clusterrole=rosas", "--user=rosa"])?;
    for args in [&["get", "configmaps", "-n", "roles-before"][..], &["get", "configmaps", "-A"], &["get", "nodes"]] {
        rosa.ok(args)?;
    }
    ensure!(rosa.ok(&["auth", "can-i", "list", "nodes"])?.trim() == "yes");
    rosa.fails(&["get", "secrets", "-A"])?;
    admin.ok_with(&["create", "-f", "-"], &namespace("roles-after"))?;
    rosa.ok(&["get", "configmaps", "-n", "roles-after"])?;

    // The cluster sees the written object. Other clusters see no object, and get no rights.
    let binding = json_of(&admin, &["get", "clusterrolebinding", "rosas"])?;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "rosas"});
    ensure!(binding["kind"] == "ClusterRoleBinding" && binding["roleRef"] == role, "{binding}");
    ensure!(binding["subjects"][0]["name"] == "rosa" && binding["metadata"].get("namespace").is_none(), "{binding}");
    let wide = admin.ok(&["get", "clusterrolebindings", "-o", "wide"])?;
    ensure!(wide.contains("ClusterRole/rosas") && !wide.contains("vc:") && !wide.contains("atoll"), "{wide}");
    for args in [["get", "clusterrole", "rosas"], ["get", "clusterrolebinding", "rosas"]] {
        ensure!(neighbour.fails(&args)?.contains("(NotFound)"));
    }
    ensure!(!names(&neighbour, "clusterroles")?.iter().any(|name| name.contains("rosas")));
    namesake.fails(&["get", "nodes"])?;
    ensure!(of_the_host(&host)? == before, "objects of the host have changed");

    admin.ok(&["delete", "clusterrolebinding", "rosas"])?;
    eventually(REVOKED, || {
        rosa.fails(&["get", "nodes"])?;
        rosa.fails(&["get", "configmaps", "-n", "roles-after"])
    })?;
    admin.ok(&["delete", "clusterrole", "rosas"])?;
    Ok(())
}

pub(super) fn nobody_grants_what_they_lack(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(HANGZHOU, Route::Proxy)?;
    let mia = site.user(HANGZHOU, "mia")?;
    let writer = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"mias"},"rules":[
{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles","clusterrolebindings"],"verbs":["create","get","patch","update"]},
{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]},{"nonResourceURLs":["/version"],"verbs":["get"]}]}"#;
    admin.ok_with(&["create", "-f", "-"], writer)?;
    admin.ok(&["create", "clusterrolebinding", "mias", "--clusterrole=mias", "--user=mia"])?;
    mia.ok(&["create", "clusterrole", "mias-own", "--verb=get", "--resource=configmaps"])?;
    mia.ok(&["create", "clusterrolebinding", "mias-own", "--clusterrole=mias-own", "--user=noa"])?;
    mia.ok(&["patch", "clusterrole", "mias-own", "-p", r#"{"metadata":{"labels":{"a":"b"}}}"#])?;
    let lacking =
        r#"user "mia" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held"#;
    for args in [
        &["create", "clusterrole", "more", "--verb=get,list", "--resource=configmaps"][..],
        &["create", "clusterrole", "more", "--verb=create", "--resource=roles"],
        &["create", "clusterrole", "more", "--verb=create,update", "--resource=rolebindings.rbac.authorization.k8s.io"],
        &["create", "clusterrole", "more", "--verb=get", "--non-resource-url=/metrics"],
        &["create", "clusterrole", "more", "--aggregation-rule=a=b"],
        &[
            "patch",
            "clusterrole",
            "mias-own",
            "--type=json",
            "-p",
            r#"[{"op":"add","path":"/rules/0/verbs/-","value":"list"}]"#,
        ],
        &[
            "patch",
            "clusterrole",
            "mias-own",
            "--type=merge",
            "-p",
            r#"{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}"#,
        ],
        &[
            "patch",
            "clusterrole",
            "mias-own",
            "-p",
            r#"{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}"#,
        ],
        &["create", "clusterrolebinding", "more", "--clusterrole=cluster-admin", "--user=mia"],
    ] {
        let refused = mia.fails(args)?;
        ensure!(refused.contains("is forbidden: ") && refused.contains(lacking), "{args:?}: {refused}");
        ensure!(!refused.contains("vc:") && !refused.contains("atoll"), "{args:?}: {refused}");
    }
    // A user with the verb bind or escalate does not need the rights of the role.
    admin.ok(&[
        "create",
        "clusterrole",
        "binders",
        "--verb=bind",
        "--resource=clusterroles.rbac.authorization.k8s.io",
        "--resource-name=view",
        "--resource-name=binders",
    ])?;
    admin.ok(&["create", "clusterrolebinding", "binders", "--clusterrole=binders", "--user=mia"])?;
    mia.ok(&["create", "clusterrolebinding", "mia-views", "--clusterrole=view", "--user=noa"])?;
    mia.fails(&["create", "clusterrolebinding", "mia-edits", "--clusterrole=edit", "--user=noa"])?;
    mia.ok(&["create", "clusterrolebinding", "mia-binds", "--clusterrole=binders", "--user=noa"])?;
    // The agent checks ClusterRoleBindings as ClusterRoleBindings.
    let account = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"bad"},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[{"kind":"ServiceAccount","name":"a"}]}"#;
    for (manifest, why) in [
        (account.to_owned(), "subjects[0].namespace: Required value"),
        (account.replace(r#""ClusterRole","#, r#""Role","#), r#"roleRef.kind: Unsupported value: "Role""#),
    ] {
        let refused = admin.run_with(&["create", "-f", "-"], &manifest)?.stderr;
        ensure!(refused.contains(r#"The ClusterRoleBinding "bad" is invalid"#) && refused.contains(why), "{refused}");
    }
    for args in [["delete", "clusterrolebinding", "cluster-admin"], ["delete", "clusterrole", "cluster-admin"]] {
        ensure!(admin.fails(&args)?.contains("(Forbidden)"));
    }
    Ok(())
}

pub(super) fn aggregation_stays_in_the_cluster(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Path)?;
    let neighbour = site.administrator(HANGZHOU, Route::Proxy)?;
    let host = site.host().kubectl();
    let before = of_the_host(&host)?;

    let labelled = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"widgets","labels":
{"rbac.authorization.k8s.io/aggregate-to-view":"true","rbac.authorization.k8s.io/aggregate-to-edit":"true",
"rbac.authorization.k8s.io/aggregate-to-admin":"true","kubernetes.io/bootstrapping":"rbac-defaults","example.com/operators":"true"}},
"rules":[{"apiGroups":["example.com"],"resources":["widgets"],"verbs":["get"]}]}"#;
    admin.ok_with(&["create", "-f", "-"], labelled)?;
    admin.ok_with(&["apply", "-f", "-"], labelled)?;
    admin.ok_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], labelled)?;
    admin.ok(&["label", "clusterrole", "widgets", "more=less"])?;
    let shown = json_of(&admin, &["get", "clusterrole", "widgets"])?;
    let mut labels: Value = serde_json::from_str::<Value>(labelled)?["metadata"]["labels"].clone();
    labels["more"] = json!("less");
    ensure!(shown["metadata"]["labels"] == labels, "{shown}");
    for selector in ["more=less", "rbac.authorization.k8s.io/aggregate-to-view=true,more"] {
        let found = admin.ok(&["get", "clusterroles", "-l", selector, "-o", "name"])?;
        ensure!(found.trim() == "clusterrole.rbac.authorization.k8s.io/widgets", "{found}");
    }
    // Selectors also apply to shared roles.
    let found =
        admin.ok(&["get", "clusterroles", "-l", "rbac.authorization.k8s.io/aggregate-to-view=true", "-o", "name"])?;
    ensure!(found.contains("system:aggregate-to-view") && found.contains("/widgets"), "{found}");

    ensure!(names(&neighbour, "clusterroles")?.iter().all(|name| !name.contains("widgets")));
    its_view_grows(site, &admin, &neighbour)?;
    aggregated(&host)?;
    ensure!(of_the_host(&host)? == before);
    admin.ok(&["delete", "clusterroles", "-l", "more=less"])?;
    ensure!(admin.fails(&["get", "clusterrole", "widgets"])?.contains("(NotFound)"));
    eventually(CONDITION_TIMEOUT, || {
        let view = json_of(&admin, &["get", "clusterrole", "view"])?;
        ensure!(!view["rules"].to_string().contains("widgets"), "{view}");
        Ok(())
    })?;
    Ok(())
}

/// Each cluster has its own `admin`, `edit` and `view`, which aggregate its own roles.
fn its_view_grows(site: &VirtualSite, admin: &Kubectl, neighbour: &Kubectl) -> anyhow::Result<()> {
    for (cluster, kubectl, grows) in [(BEIJING, admin, true), (HANGZHOU, neighbour, false)] {
        kubectl.ok(&["create", "rolebinding", "vera", "-n", "default", "--clusterrole=view", "--user=vera"])?;
        let vera = site.user(cluster, "vera")?;
        eventually(CONDITION_TIMEOUT, || {
            vera.ok(&["get", "configmaps", "-n", "default"])?;
            let rule = json!({"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]});
            for name in ["view", "edit", "admin"] {
                let role = json_of(kubectl, &["get", "clusterrole", name])?;
                let rules = role["rules"].as_array().context("rules")?;
                ensure!(rules.contains(&rule) == grows && rules.len() > 3, "{cluster}: {role}");
                ensure!(role["aggregationRule"]["clusterRoleSelectors"].is_array(), "{role}");
                ensure!(role["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults", "{role}");
            }
            // kubectl does not know a kind that the cluster does not serve. A review accepts it.
            let asked = r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":
{"group":"example.com","resource":"widgets","verb":"get","namespace":"default","name":"a"}}}"#;
            let output: Value =
                serde_json::from_str(&vera.ok_with(&["create", "--validate=false", "-o", "json", "-f", "-"], asked)?)?;
            ensure!(output["status"]["allowed"] == grows, "{cluster}: {output}");
            Ok(())
        })?;
        kubectl.ok(&["delete", "rolebinding", "vera", "-n", "default"])?;
    }
    Ok(())
}

pub(super) fn kubectl_works_on_them_as_anywhere(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(HANGZHOU, Route::Path)?;
    let both = |verbs: &str, user: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"List","items":[
{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{{"name":"everyday"}},"rules":[{{"apiGroups":[""],"resources":["pods"],"verbs":{verbs}}}]}},
{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{{"name":"everyday"}},
"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"everyday"}},
"subjects":[{{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"{user}"}},{{"kind":"ServiceAccount","name":"a","namespace":"default"}}]}}]}}"#
        )
    };
    let subject = |number: usize| format!("jsonpath={{.subjects[{number}].name}}");
    admin.ok_with(&["apply", "-f", "-"], &both(r#"["get"]"#, "one"))?;
    let again = admin.ok_with(&["apply", "-f", "-"], &both(r#"["get"]"#, "one"))?;
    ensure!(again.matches("unchanged").count() == 2, "{again}");
    admin.ok_with(&["apply", "-f", "-"], &both(r#"["get","list"]"#, "two"))?;
    ensure!(admin.ok(&["get", "clusterrolebinding", "everyday", "-o", &subject(0)])? == "two");
    admin.ok_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], &both(r#"["get","list"]"#, "three"))?;
    ensure!(admin.ok(&["get", "clusterrolebinding", "everyday", "-o", &subject(0)])? == "three");
    admin.ok_with(&["apply", "-f", "-"], &both(r#"["get","list"]"#, "three"))?;
    // The first apply creates the object, and the second one changes it.
    for verbs in [r#"["get"]"#, r#"["list"]"#] {
        let applied = both(verbs, "three").replace("everyday", "applied");
        admin.ok_with(&["apply", "--server-side", "-f", "-"], &applied)?;
        ensure!(json_of(&admin, &["get", "clusterrole", "applied"])?["rules"][0]["verbs"].to_string() == verbs);
    }
    admin.ok(&["delete", "clusterrole/applied", "clusterrolebinding/applied"])?;
    let diff = admin.ok_with(&["diff", "-f", "-"], &both(r#"["get","list"]"#, "three"))?;
    ensure!(diff.is_empty(), "{diff}");
    admin.ok_with(&["auth", "reconcile", "-f", "-"], &both(r#"["get","watch"]"#, "four"))?;
    let subjects = admin.ok(&["get", "clusterrolebinding", "everyday", "-o", "jsonpath={.subjects[*].name}"])?;
    ensure!(subjects.contains("three") && subjects.contains("four"), "{subjects}");
    // Managed fields can be cleared (Server-Side Apply, "Clearing managedFields").
    let cleared = r#"[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]"#;
    for kind in ["clusterrole", "clusterrolebinding"] {
        admin.ok(&["patch", kind, "everyday", "--type=json", "-p", cleared])?;
        let read = json_of(&admin, &["get", kind, "everyday", "--show-managed-fields"])?;
        ensure!(read["metadata"].get("managedFields").is_none(), "{read}");
    }
    let patch = r#"[{"op":"replace","path":"/subjects/0/name","value":"five"}]"#;
    admin.ok(&["patch", "clusterrolebinding", "everyday", "--type=json", "-p", patch])?;
    ensure!(admin.ok(&["get", "clusterrolebinding", "everyday", "-o", &subject(0)])? == "five");
    let refused = admin.fails(&["patch", "clusterrolebinding", "everyday", "-p", r#"{"roleRef":{"name":"view"}}"#])?;
    ensure!(refused.contains("cannot change roleRef"), "{refused}");
    ensure!(admin.ok(&["describe", "clusterrolebinding", "everyday"])?.contains("Name:  everyday"));
    let named = ["get", "clusterroles", "--field-selector=metadata.name=everyday", "-o", "name"];
    ensure!(admin.ok(&named)?.trim() == "clusterrole.rbac.authorization.k8s.io/everyday");
    ensure!(admin.ok(&["auth", "can-i", "get", "pods", "--as=five"])?.trim() == "yes");

    // A watch contains ClusterRoleBindings, which are RoleBindings on the host.
    let target = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?watch=1&timeoutSeconds=2&fieldSelector=metadata.name%3Deveryday";
    let events = admin.ok(&["get", "--raw", target])?;
    let event: Value = serde_json::from_str(events.lines().next().context("no event")?)?;
    ensure!(event["type"] == "ADDED" && event["object"]["kind"] == "ClusterRoleBinding", "{event}");

    let built_in = json_of(&admin, &["get", "clusterrolebinding", "cluster-admin"])?;
    let masters = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:masters"}]);
    ensure!(built_in["subjects"] == masters && built_in["metadata"].get("labels").is_none(), "{built_in}");
    admin.ok(&["delete", "clusterrole/everyday", "clusterrolebinding/everyday"])?;
    Ok(())
}

pub(super) fn roles_aggregate_by_selectors(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(HANGZHOU, Route::Proxy)?;
    let rules = |name: &str| json_of(&admin, &["get", "clusterrole", name]).map(|role| role["rules"].clone());
    admin.ok(&["create", "clusterrole", "sum", "--aggregation-rule=of=sum"])?;
    let part = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"part","labels":{"of":"sum"}},
"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}"#;
    admin.ok_with(&["create", "-f", "-"], part)?;
    admin.ok(&["create", "clusterrolebinding", "sum", "--clusterrole=sum", "--user=ada"])?;
    eventually(CONDITION_TIMEOUT, || {
        ensure!(rules("sum")? == rules("part")?, "{}", rules("sum")?);
        ensure!(admin.run(&["auth", "can-i", "get", "pods", "-A", "--as=ada"])?.stdout.trim() == "yes");
        Ok(())
    })?;
    let shown = json_of(&admin, &["get", "clusterrole", "sum"])?;
    let selectors = json!({"clusterRoleSelectors": [{"matchLabels": {"of": "sum"}}]});
    ensure!(shown["aggregationRule"] == selectors && shown["metadata"].get("annotations").is_none(), "{shown}");
    // Selectors also apply to built-in roles.
    admin.ok(&[
        "create",
        "clusterrole",
        "views",
        "--aggregation-rule=rbac.authorization.k8s.io/aggregate-to-view=true",
    ])?;
    eventually(CONDITION_TIMEOUT, || {
        let found = rules("views")?;
        ensure!(found.as_array().is_some_and(|rules| rules.len() > 5), "{found}");
        Ok(())
    })?;
    admin.ok(&["delete", "clusterrole/part"])?;
    eventually(CONDITION_TIMEOUT, || {
        ensure!(rules("sum")?.as_array().is_none_or(Vec::is_empty));
        Ok(())
    })?;
    admin.ok(&["delete", "clusterrolebinding/sum", "clusterrole/sum", "clusterrole/views"])?;
    Ok(())
}

pub(super) fn impersonation_stays_in_the_cluster(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(HANGZHOU, Route::Path)?;
    let proxy = site.user(HANGZHOU, "cluster-proxy")?;
    // The rights that Karmada grants its service account in a member.
    let role = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"impersonator"},"rules":[
{"apiGroups":[""],"resources":["users"],"verbs":["impersonate"],"resourceNames":["system:admin"]},
{"apiGroups":[""],"resources":["groups"],"verbs":["impersonate"],"resourceNames":["system:masters"]},
{"apiGroups":[""],"resources":["serviceaccounts"],"verbs":["impersonate"],"resourceNames":["default"]}]}"#;
    admin.ok_with(&["create", "-f", "-"], role)?;
    admin.ok(&[
        "create",
        "clusterrolebinding",
        "impersonator",
        "--clusterrole=impersonator",
        "--user=cluster-proxy",
    ])?;
    let nodes = proxy.ok(&["get", "nodes", "-o", "name", "--as=system:admin", "--as-group=system:masters"])?;
    ensure!(nodes.contains("hangzhou") && !nodes.contains("beijing"), "{nodes}");
    let namespaces =
        proxy.ok(&["get", "namespaces", "-o", "name", "--as=system:admin", "--as-group=system:masters"])?;
    ensure!(!namespaces.contains("atoll-system"), "{namespaces}");
    for args in [
        &["get", "nodes"][..],
        &["get", "nodes", "--as=somebody"],
        &["get", "nodes", "--as=system:admin"],
        &["get", "nodes", "--as=system:admin", "--as-group=others"],
        &["get", "nodes", "--as=system:serviceaccount:default:other"],
    ] {
        ensure!(proxy.fails(args)?.contains("(Forbidden)"), "{args:?}");
    }
    let who = proxy.ok(&["auth", "whoami", "--as=system:serviceaccount:default:default"])?;
    ensure!(who.contains("system:serviceaccount:default:default"), "{who}");
    admin.ok(&["delete", "clusterrolebinding/impersonator", "clusterrole/impersonator"])?;
    Ok(())
}
