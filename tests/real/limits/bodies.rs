//! Bodies whose decoded form is much larger than their length.

use std::sync::Arc;
use std::thread;

use anyhow::{Context, anyhow, ensure};
use atoll_tests::costly::{
    aliases_of_a_text, containers, deployment_of_empty_messages, empty_messages, groups, keys, labels, quoted, valid,
    valid_deployment, wrong_subjects,
};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Curl, HostCluster, Route, eventually};

use super::{Memory, site};

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const YAML: &str = "application/yaml";
const APPLY: &str = "application/apply-patch+yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const PODS: &str = "/api/v1/namespaces/default/pods?dryRun=All";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments?dryRun=All";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SMALL: &str = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt?dryRun=All";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?dryRun=All";

const TOO_MANY: &str = "this cluster has sent too many objects";

/// Bodies up to this length, in bytes, do not wait because of their length.
const SHORT: usize = 256 << 10;

/// None of these requests reaches the host, which would need minutes for each. It reports an error for each element,
/// and copies the whole text for each error (`aggregate.Error` in apimachinery's `pkg/util/errors`).
pub(super) fn short_ones_are_weighed(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let (site, cluster, other) = site(host, "weighed", "")?;
    let [own, other] = [cluster, other].map(|cluster| {
        let kubectl = site.administrator(&cluster, Route::Path)?;
        site.curl_like(&kubectl, &cluster, Route::Path)
    });
    let (own, other) = (own?, other?);
    for (what, path, media, body) in [
        ("containers in JSON", PODS, JSON, containers("{}", 80_000).into_bytes()),
        ("containers that are null", PODS, JSON, containers("null", 30_000).into_bytes()),
        ("containers in protobuf", PODS, PROTOBUF, empty_messages(80_000)),
        ("a Deployment in protobuf", DEPLOYMENTS, PROTOBUF, deployment_of_empty_messages(60_000)),
        ("subjects in YAML", BINDINGS, YAML, wrong_subjects(20_000).into_bytes()),
    ] {
        ensure!(body.len() < SHORT, "{what}: {} bytes", body.len());
        let response = own.send_bytes("POST", path, media, &body)?;
        response.refused(413, "RequestEntityTooLarge", "the object has too many fields").with_context(|| what)?;
    }
    let options = format!("kind: DeleteOptions\napiVersion: v1\nx:\n{}", "-\n".repeat(100_000));
    let response = own.send_as("DELETE", &format!("{CONFIG_MAPS}/none"), YAML, &options)?;
    response.refused(413, "RequestEntityTooLarge", "limit is 65536")?;
    // These requests reach the host, which needs some hundred milliseconds for each. Its response contains the time.
    let costly = containers("{}", 500);
    let response = own.send("POST", PODS, &costly)?;
    response.refused(422, "Invalid", "spec.containers[499].name: Required value")?;
    // Some are admitted at once, and then one every few seconds, however slow this machine is.
    let mut limited = false;
    for _ in 0..60 {
        let response = own.send("POST", PODS, &costly)?;
        if response.code != 429 {
            continue;
        }
        response.refused(429, "TooManyRequests", TOO_MANY)?;
        // A small patch of a large object needs as much time. On a slow machine, it may come when the next one is admitted.
        let response = own.send_as("PATCH", SMALL, MERGE_PATCH, "{}")?;
        if response.code == 429 {
            response.refused(429, "TooManyRequests", TOO_MANY)?;
            limited = true;
            break;
        }
    }
    ensure!(limited, "no patch was refused");
    // The limit applies neither to other bodies of the cluster nor to other clusters.
    let small = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
    for curl in [&own, &other] {
        let response = curl.send("POST", &format!("{CONFIG_MAPS}?dryRun=All"), small)?;
        ensure!(response.code == 201, "{response:?}");
    }
    let response = other.send("POST", PODS, &costly)?;
    ensure!(response.code == 422, "{response:?}");
    Ok(())
}

/// The host would need minutes for each of these objects. The agent sends a sample first, and returns the refusal of
/// the sample.
pub(super) fn samples_come_first(host: Arc<HostCluster>) -> anyhow::Result<()> {
    const MANY: usize = 20_000;
    const OBJECT: &str = "/api/v1/namespaces/default/configmaps/costly";
    let (site, cluster, _) = site(host, "sampled", "")?;
    let kubectl = site.administrator(&cluster, Route::Path)?;
    let own = site.curl_like(&kubectl, &cluster, Route::Path)?;
    let kept = keys(MANY, "!");
    let response = own.send("POST", CONFIG_MAPS, &kept)?;
    ensure!(response.code == 201 && response.warning.is_empty(), "{} {:.300}", response.code, response.body);
    let stored: serde_json::Value = serde_json::from_str(&response.body)?;
    ensure!(stored["data"].as_object().is_some_and(|keys| keys.len() == MANY), "the whole object is stored");

    let applied = format!("{OBJECT}?fieldManager=a&force=true");
    let copied = r#"[{"op":"copy","from":"/data","path":"/metadata/labels"}]"#;
    for (what, method, path, media, body) in [
        ("labels in JSON", "POST", CONFIG_MAPS, JSON, labels(MANY).into_bytes()),
        ("labels of an update", "PUT", OBJECT, JSON, labels(MANY).into_bytes()),
        ("labels of a patch", "PATCH", OBJECT, MERGE_PATCH, labels(MANY).into_bytes()),
        ("labels of an apply", "PATCH", &applied, APPLY, labels(MANY).into_bytes()),
        ("labels that are copied", "PATCH", OBJECT, JSON_PATCH, copied.into()),
        ("containers", "POST", PODS, JSON, containers("{}", 5000).into_bytes()),
        ("groups in protobuf", "POST", PODS, PROTOBUF, groups(MANY, false)),
        ("groups in one field of protobuf", "POST", PODS, PROTOBUF, groups(MANY, true)),
    ] {
        let response = own.send_bytes(method, path, media, &body)?;
        ensure!(response.code == 422, "{what}: {} {:.300}", response.code, response.body);
        ensure!(response.warning.contains("a random sample"), "{what}: no warning, but {:?}", response.warning);
        ensure!(response.body.len() < 1 << 20, "{what}: {} bytes", response.body.len());
    }

    // The host would report all errors of this name.
    let name = "\u{1}".repeat(200);
    let managed = format!(r#"{{"metadata":{{"managedFields":[{{"manager":{}}}]}}}}"#, serde_json::json!(name));
    let added = r#"[{"op":"add","path":"/metadata/managedFields/-","value":{"manager":NAME}}]"#;
    let added = added.replace("NAME", &serde_json::json!(name).to_string());
    let too_long = "Too long: may not be more than 128 bytes";
    let in_query = format!("{OBJECT}?fieldManager={}", "%01".repeat(200));
    let small = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    for (path, media, body) in
        [(in_query.as_str(), MERGE_PATCH, "{}"), (OBJECT, MERGE_PATCH, &managed), (small, JSON_PATCH, &added)]
    {
        own.send_as("PATCH", path, media, body)?.refused(422, "Invalid", too_long)?;
    }

    // Unknown members do not displace others in a sample.
    let unknown: Vec<_> = (0..200).map(|member| format!(r#""x{member}":0"#)).collect();
    let unknown = format!(r#""spec":{{{},"#, unknown.join(","));
    let hidden = containers(r#"{"name":"a","image":"a"}"#, 1000).replace(r#""spec":{"#, &unknown);
    let response = own.send("POST", PODS, &hidden)?;
    response.refused(400, "BadRequest", "unknown field")?;

    // Messages of the client do not matter either.
    let named = labels(MANY).replacen(r#":"!""#, r#":"admission webhook \"a\" strict decoding error""#, 1);
    for (method, path, media) in
        [("POST", CONFIG_MAPS, JSON), ("PATCH", OBJECT, MERGE_PATCH), ("PATCH", OBJECT, STRATEGIC)]
    {
        for body in [named.clone(), named.replacen('{', r#"{"unknown":0,"#, 1)] {
            let response = own.send_as(method, path, media, &body)?;
            ensure!(response.code == 422, "{method} {media}: {} {:.300}", response.code, response.body);
            // Another warning can come before that of the sample.
            ensure!(response.body.len() < 1 << 20, "{method} {media}: {} bytes", response.body.len());
        }
    }

    valid_samples_are_accepted(&own)?;

    // If few values are invalid, the host gets the whole object, and reports all of them.
    let few = kept.replace(r#""k9000":"#, r#""!":"#).replace(r#""k19999":"#, r#""?":"#);
    let response = own.send("PUT", OBJECT, &few)?;
    response.refused(422, "Invalid", "data[!]: Invalid value")?;
    response.refused(422, "Invalid", "data[?]: Invalid value")?;
    ensure!(response.warning.is_empty(), "{:?}", response.warning);

    // Some of these responses took so long that the cluster must wait.
    for (path, object) in quoted() {
        let response = eventually(CONDITION_TIMEOUT, || {
            let response = own.send("POST", path, &object)?;
            ensure!(response.code == 422, "{path}: {} {:.300}", response.code, response.body);
            Ok(response)
        })?;
        ensure!(response.warning.contains("a random sample"), "{path}: no warning, but {:?}", response.warning);
        ensure!(response.body.len() < 4 << 20, "{path}: {} bytes", response.body.len());
    }
    Ok(())
}

/// Samples of valid objects are valid.
fn valid_samples_are_accepted(own: &Curl) -> anyhow::Result<()> {
    for (path, object) in valid() {
        for _ in 0..3 {
            let response = own.send("POST", &format!("{path}?dryRun=All"), &object)?;
            ensure!(
                response.code == 201 && response.warning.is_empty(),
                "{path}: {} {:.500}",
                response.code,
                response.body
            );
        }
    }

    for _ in 0..3 {
        let path = "/apis/apps/v1/namespaces/default/deployments?dryRun=All";
        let response = own.send_bytes("POST", path, PROTOBUF, &valid_deployment())?;
        ensure!(response.code == 201 && response.warning.is_empty(), "{} {:.500}", response.code, response.body);
    }
    // The host ignores unknown members of a newer client.
    let (path, slice) = &valid()[3];
    let newer = slice.replace(r#""ready":true"#, r#""ready":true,"newer":true"#);
    let response = own.send("POST", &format!("{path}?dryRun=All"), &newer)?;
    ensure!(
        response.code == 201 && response.warning.contains("unknown field"),
        "{} {:.500}",
        response.code,
        response.body
    );
    // It also ignores duplicate members of an apply in JSON.
    let notes = "notes ".repeat(400);
    let twice = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"twice","annotations":{{"a":"{notes}"}}}},"data":{{"a":"1","a":"2"}}}}"#
    );
    let path = "/api/v1/namespaces/default/configmaps/twice?fieldManager=a&dryRun=All";
    let response = own.send_as("PATCH", path, APPLY, &twice)?;
    ensure!(response.code == 201, "{} {:.500}", response.code, response.body);
    Ok(())
}

/// In each of these requests, 20 KB of YAML become 8 MiB of JSON when aliases are expanded.
pub(super) fn aliases_are_expanded_within_bounds(host: Arc<HostCluster>) -> anyhow::Result<()> {
    const AT_ONCE: usize = 20;
    let (site, cluster, _) = site(host, "aliases", "")?;
    let kubectl = site.administrator(&cluster, Route::Path)?;
    let curl = site.curl_like(&kubectl, &cluster, Route::Path)?;
    let path = format!("{CONFIG_MAPS}/a?fieldManager=aliases");
    let memory = Memory::measure(&site)?;
    // The first ones are longer than the maximum body. The others reach the host sequentially, which refuses the
    // unknown fields. Requests that wait for too long get an error.
    for (count, codes) in [(480, &[400, 429][..]), (170, &[500, 429])] {
        let body = aliases_of_a_text(count);
        ensure!(body.len() < 20_000, "{} bytes", body.len());
        let responses = thread::scope(|scope| {
            let sent: Vec<_> =
                (0..AT_ONCE).map(|_| scope.spawn(|| curl.send_as("PATCH", &path, APPLY, &body))).collect();
            sent.into_iter()
                .map(|sent| sent.join().map_err(|_| anyhow!("a client panicked"))?)
                .collect::<anyhow::Result<Vec<_>>>()
        })?;
        memory.is_bounded()?;
        ensure!(responses.iter().any(|response| response.code == codes[0]), "{count} aliases: {responses:.300?}");
        for response in responses {
            ensure!(codes.contains(&response.code), "{count} aliases: {} {:.300}", response.code, response.body);
        }
    }
    let response = curl.get(CONFIG_MAPS)?;
    ensure!(response.code == 200, "{response:?}");
    Ok(())
}
