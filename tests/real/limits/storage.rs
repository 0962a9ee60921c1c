//! What a virtual cluster stores on the host is limited: the number of objects of each resource, and bytes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use atoll_tests::{HostCluster, Route, eventually, site};
use serde_json::json;

use super::limited::Limited;

/// The limit for Secrets.
const SECRETS: usize = 6;
/// The limit for bytes, in MiB.
const MIB: usize = 4;
/// More objects than the limits allow.
const MOST: usize = 60;
/// The length of a large ConfigMap.
const LARGE: usize = 300_000;
/// A virtual cluster must be below a limit for ten seconds before the policy changes.
const SETTLED: Duration = Duration::from_secs(60);

fn texts(args: &[&str]) -> Vec<String> {
    args.iter().map(|text| (*text).to_owned()).collect()
}

pub(super) fn objects_are_limited(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let limited = Limited::start(host, "stored", &format!("objectsOf: {{secrets: {SECRETS}}}"))?;
    let admin = &limited.admin;
    let mut made = 0;
    let refused = loop {
        let (name, namespace) = (format!("secret-{made}"), ["default", "second"][made % 2]);
        let output = admin.run(&["create", "secret", "generic", &name, "-n", namespace])?;
        if output.code != 0 {
            break output.stderr;
        }
        made += 1;
        ensure!(made < MOST, "Secrets are not limited");
    };
    ensure!(made >= SECRETS, "{made} Secrets, and then {refused}");
    let words = format!("limited: count/secrets={SECRETS}");
    ensure!(
        refused.contains("exceeded quota: atoll, requested: count/secrets=1") && refused.contains(&words),
        "{refused}"
    );
    ensure!(!refused.contains(&limited.cluster), "the host name of the namespace: {refused}");

    // Directly at the host, in both namespaces.
    let words = format!("exceeded quota: atoll, requested: count/secrets=1, limited: count/secrets={SECRETS}");
    for namespace in ["default", "second"] {
        let namespace = limited.on_host(namespace);
        limited.is_refused(&words, |attempt| {
            texts(&["create", "secret", "generic", &format!("direct-{attempt}"), "-n", &namespace])
        })?;
    }
    // An apply also creates an object.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "applied", "namespace": "second"}});
    let applied = admin.run_with(&["apply", "--server-side", "-f", "-"], &secret.to_string())?;
    ensure!(applied.code != 0 && applied.stderr.contains(&words), "{applied:?}");
    // Existing Secrets, and other resources, are not affected.
    admin.ok(&["label", "secret", "secret-0", "-n", "default", "a=b"])?;
    admin.ok(&["create", "configmap", "other", "-n", "default"])?;
    limited.direct.ok(&["create", "configmap", "direct", "-n", &limited.on_host("second")])?;

    // Nobody in the virtual cluster can remove the limit, and its quotas are not shown.
    let refused = limited.direct.fails(&["delete", "validatingadmissionpolicy", "quotas.atoll.dev"])?;
    ensure!(refused.contains("forbidden"), "{refused}");
    let root = format!("atoll-root-{}", limited.cluster);
    let refused = limited.direct.fails(&["annotate", "namespace", &root, "atoll.dev/full-"])?;
    ensure!(refused.contains("only users of the endpoint"), "{refused}");
    let quotas = admin.ok(&["get", "resourcequotas", "-A", "-o", "name"])?;
    ensure!(quotas.is_empty(), "{quotas}");

    // Another virtual cluster is not affected.
    let other = limited.site.administrator(&limited.other, Route::Path)?;
    for number in 0..=SECRETS {
        other.ok(&["create", "secret", "generic", &format!("secret-{number}"), "-n", "default"])?;
    }
    let status = site::atoll(&["status", "--admin", &limited.site.site().admin("site-a")?])?;
    ensure!(status.contains(&format!("has reached its limits: secrets={SECRETS}")), "{status}");

    // With fewer Secrets, there is room again.
    admin.ok(&["delete", "secrets", "--all", "-n", "default"])?;
    eventually(SETTLED, || {
        limited.direct.ok(&["create", "secret", "generic", "again", "-n", &limited.on_host("second")])
    })?;
    Ok(())
}

/// A client changes one object again and again. Each version stays in etcd for a while.
pub(super) fn versions_are_limited(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let limited = Limited::start(host, "often", &format!("writtenMiB: {MIB}"))?;
    let curl = limited.site.curl_like(&limited.admin, &limited.cluster, Route::Path)?;
    limited.admin.ok(&["create", "configmap", "changing", "-n", "default"])?;
    let path = "/api/v1/namespaces/default/configmaps/changing";
    let change = |number: usize| {
        let text = format!("{number}").repeat(LARGE);
        curl.send_as("PATCH", path, "application/merge-patch+json", &json!({"data": {"text": text}}).to_string())
    };
    let words = format!("exceeded quota: atoll, limited: written={}", MIB << 20);
    let (mut number, mut bytes) = (0, 0);
    let refused = loop {
        let response = change(number % 10)?;
        if response.code != 200 {
            break response;
        }
        (number, bytes) = (number + 1, bytes + LARGE);
        ensure!(number < 10 * MOST, "versions are not limited");
    };
    refused.refused(403, "Forbidden", &words)?;
    ensure!(bytes > (MIB << 20) / 2, "{bytes} bytes");

    // The limit also holds for tokens that are used directly at the host, although nothing is stored any more.
    limited.admin.ok(&["delete", "configmap", "changing", "-n", "default"])?;
    let default = limited.on_host("default");
    limited
        .is_refused(&words, |attempt| texts(&["create", "configmap", &format!("direct-{attempt}"), "-n", &default]))?;
    // The agent itself refuses creations, and all writes outside of namespaces.
    let role = ["create", "clusterrole", "another", "--verb=get", "--resource=pods"];
    for args in [&["create", "configmap", "another", "-n", "default"][..], &role, &["create", "namespace", "another"]] {
        let refused = limited.admin.fails(args)?;
        ensure!(refused.contains("exceeded quota: atoll, requested: written="), "{args:?}: {refused}");
    }
    limited.admin.ok(&[&role[..], &["--dry-run=server"]].concat())?;
    let other = limited.site.administrator(&limited.other, Route::Path)?;
    other.ok(&["create", "configmap", "small", "-n", "default"])?;
    let status = site::atoll(&["status", "--admin", &limited.site.site().admin("site-a")?])?;
    ensure!(status.contains(&format!("has reached its limits: written={}", MIB << 20)), "{status}");
    Ok(())
}

pub(super) fn bytes_are_limited(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let limited = Limited::start(host, "large", &format!("storageMiB: {MIB}"))?;
    let curl = limited.site.curl_like(&limited.admin, &limited.cluster, Route::Path)?;
    let large = |name: &str| {
        let data = json!({"text": "x".repeat(LARGE)});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}).to_string()
    };
    limited.admin.ok(&["create", "configmap", "small", "-n", "second"])?;
    let mut made = 0;
    let refused = loop {
        let namespace = ["default", "second"][made % 2];
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        let response = curl.send("POST", &path, &large(&format!("large-{made}")))?;
        if response.code != 201 {
            break response;
        }
        made += 1;
        ensure!(made < MOST, "bytes are not limited");
    };
    ensure!(made * LARGE > (MIB << 20) / 2, "{made} objects, and then {refused:?}");
    refused.refused(403, "Forbidden", "exceeded quota: atoll, requested: storage=300")?;
    // The rest of the room. Updates are refused once nothing is left.
    let path = "/api/v1/namespaces/second/configmaps/small";
    let grow = json!({"data": {"text": "x".repeat(LARGE)}}).to_string();
    let grown = curl.send_as("PATCH", path, "application/merge-patch+json", &grow)?;
    ensure!(grown.code == 200, "{grown:?}");

    let words = format!("exceeded quota: atoll, limited: storage={}", MIB << 20);
    let second = limited.on_host("second");
    limited
        .is_refused(&words, |attempt| texts(&["create", "configmap", &format!("direct-{attempt}"), "-n", &second]))?;
    limited.is_refused(&words, |_| texts(&["label", "configmap", "small", "-n", &second, "--overwrite", "a=b"]))?;
    curl.send_as("PATCH", path, "application/merge-patch+json", &grow.replace("text", "more"))?.refused(
        403,
        "Forbidden",
        &words,
    )?;
    // Objects can be deleted, also if something must remove a finalizer first. Other virtual clusters are not affected.
    let other = limited.site.administrator(&limited.other, Route::Path)?;
    other.ok(&["create", "configmap", "small", "-n", "default"])?;
    limited.admin.ok(&["delete", "configmaps", "--all", "-n", "second"])?;
    eventually(SETTLED, || limited.direct.ok(&["create", "configmap", "again", "-n", &second]))?;
    Ok(())
}
