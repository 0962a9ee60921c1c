//! A dry run (KEP-576) changes nothing, whether the query or the body of a request requests it.

use anyhow::ensure;
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Curl, Kubectl, Route, VirtualSite, eventually};

use super::{BEIJING, namespace};

const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// `DeleteOptions` with a dry run: media type and body. In protobuf, `dryRun` is field 5 (`meta/v1/generated.proto`),
/// in field 2 of the envelope.
const DRY: [(&str, &str); 3] = [
    ("application/json", r#"{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}"#),
    ("application/yaml", "kind: DeleteOptions\napiVersion: v1\ndryRun: [All]\n"),
    ("application/vnd.kubernetes.protobuf", "k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x05\x2a\x03All"),
];

/// Whether a new namespace and an existing one have the mirror of a binding.
fn is_mirrored(site: &VirtualSite, admin: &Kubectl, binding: &str, namespaces: &[&str]) -> anyhow::Result<bool> {
    let host = site.host().kubectl();
    let mut found = Vec::new();
    for name in namespaces {
        if admin.run(&["get", "namespace", name])?.code != 0 {
            admin.ok_with(&["create", "-f", "-"], &namespace(name))?;
        }
        let mirror = format!("atoll:crb:{binding}");
        let namespace = format!("--namespace={name}-{BEIJING}");
        found.push(host.run(&["get", "rolebinding", &mirror, &namespace])?.code == 0);
    }
    ensure!(found.iter().all(|is| *is == found[0]), "{binding} in {namespaces:?}: {found:?}");
    Ok(found[0])
}

pub(super) fn of_a_delete_changes_no_rights(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let curl = site.curl_like(&admin, BEIJING, Route::Proxy)?;
    admin.ok_with(&["create", "-f", "-"], &namespace("dry-before"))?;
    admin.ok(&["create", "clusterrole", "dry-kept", "--verb=get", "--resource=pods"])?;
    admin.ok(&["create", "clusterrolebinding", "dry-kept", "--clusterrole=dry-kept", "--user=dry"])?;
    for kind in ["clusterrole", "clusterrolebinding"] {
        admin.ok(&["label", kind, "dry-kept", "dry=run"])?;
        admin.ok(&["delete", kind, "dry-kept", "--dry-run=server"])?;
        let kept = admin.ok(&["get", kind, "dry-kept", "-o", "name"])?;
        ensure!(kept.contains("dry-kept"), "{kind}: {kept}");
    }
    ensure!(is_mirrored(site, &admin, "dry-kept", &["dry-before", "dry-kubectl"])?, "a dry run has revoked rights");
    for (number, (media_type, body)) in DRY.into_iter().enumerate() {
        for path in ["/dry-kept", "?labelSelector=dry%3Drun"]
            .iter()
            .flat_map(|at| [BINDINGS, ROLES].map(|of| format!("{of}{at}")))
        {
            let response = curl.send_as("DELETE", &path, media_type, body)?;
            ensure!(response.code == 200, "{media_type} {path}: {response:?}");
        }
        for path in [BINDINGS, ROLES] {
            let kept = curl.get(&format!("{path}/dry-kept"))?;
            ensure!(kept.code == 200, "{media_type}: {kept:?}");
        }
        let made = format!("dry-made-{number}");
        ensure!(is_mirrored(site, &admin, "dry-kept", &["dry-before", &made])?, "{media_type} has revoked rights");
    }
    the_body_counts(site, &admin, &curl)?;
    finalizers_count(site, &admin)
}

/// If the query and the body differ, an API server uses the body.
fn the_body_counts(site: &VirtualSite, admin: &Kubectl, curl: &Curl) -> anyhow::Result<()> {
    let (media_type, body) = DRY[0];
    let refused = curl.send_as("DELETE", &format!("{BINDINGS}/dry-kept"), media_type, r#"{"dryRun":"All"}"#)?;
    // Kubernetes 1.32 returns an internal error.
    ensure!(refused.code == if everywhere_kubeedge() { 500 } else { 400 }, "{refused:?}");
    let response =
        curl.send_as("DELETE", &format!("{BINDINGS}/dry-kept?propagationPolicy=Orphan"), media_type, body)?;
    ensure!(response.code == 200, "{response:?}");
    ensure!(is_mirrored(site, admin, "dry-kept", &["dry-before"])?, "the query has an effect");
    let body = r#"{"kind":"DeleteOptions","apiVersion":"v1"}"#;
    let response = curl.send_as("DELETE", &format!("{BINDINGS}/dry-kept?dryRun=All"), media_type, body)?;
    ensure!(response.code == 200, "{response:?}");
    let gone = curl.get(&format!("{BINDINGS}/dry-kept"))?;
    ensure!(gone.code == 404, "{gone:?}");
    ensure!(!is_mirrored(site, admin, "dry-kept", &["dry-before", "dry-gone"])?, "the rights still exist");
    Ok(())
}

/// A binding that waits for a finalizer still grants its rights.
fn finalizers_count(site: &VirtualSite, admin: &Kubectl) -> anyhow::Result<()> {
    admin.ok(&["create", "clusterrolebinding", "dry-held", "--clusterrole=dry-kept", "--user=dry"])?;
    let finalizers = |list: &str| format!(r#"{{"metadata":{{"finalizers":{list}}}}}"#);
    let patch = |list| admin.ok(&["patch", "clusterrolebinding", "dry-held", "--type=merge", "-p", &finalizers(list)]);
    patch(r#"["example.com/held"]"#)?;
    admin.ok(&["delete", "clusterrolebinding", "dry-held", "--wait=false"])?;
    ensure!(
        is_mirrored(site, admin, "dry-held", &["dry-before", "dry-held"])?,
        "the binding was deleted before its finalizers were removed"
    );
    patch("[]")?;
    eventually(CONDITION_TIMEOUT, || {
        ensure!(!is_mirrored(site, admin, "dry-held", &["dry-before", "dry-held"])?, "the binding still exists");
        Ok(())
    })
}

pub(super) fn makes_and_ends_nothing(site: &VirtualSite) -> anyhow::Result<()> {
    let admin = site.administrator(BEIJING, Route::Proxy)?;
    let host = site.host().kubectl();
    admin.ok(&["create", "namespace", "dry-born", "--dry-run=server"])?;
    let missing = host.fails(&["get", "namespace", "dry-born-ke-beijing"])?;
    ensure!(missing.contains("(NotFound)"), "{missing}");
    // The namespace does not exist for the agent, either.
    for args in [&["create", "configmap", "a"][..], &["get", "configmap", "a"]] {
        let refused = admin.fails(&[args, &["--namespace=dry-born"]].concat())?;
        ensure!(refused.contains("not found"), "{args:?}: {refused}");
    }
    let audit = std::fs::read_to_string(site.host().dir().join("audit.log"))?;
    let made = |line: &&str| line.contains("/namespaces/dry-born-ke-beijing/") && line.contains(r#""verb":"create""#);
    let made: Vec<_> = audit.lines().filter(made).collect();
    ensure!(made.is_empty(), "the dry run has created objects: {made:?}");

    admin.ok_with(&["create", "-f", "-"], &namespace("dry-ended"))?;
    admin.ok(&["create", "priorityclass", "dry-ended", "--value=7"])?;
    for kind in ["namespace", "priorityclass"] {
        admin.ok(&["delete", kind, "dry-ended", "--dry-run=server"])?;
        let ended = admin.ok(&["get", kind, "dry-ended", "-o", "jsonpath={.metadata.deletionTimestamp}"])?;
        ensure!(ended.is_empty(), "{kind}: {ended}");
    }
    admin.ok(&["delete", "priorityclass", "dry-ended"])?;
    Ok(())
}
