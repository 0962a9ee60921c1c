//! Bodies that are much more than their length says, once they are decoded.

use std::sync::Arc;
use std::thread;

use anyhow::{Context, anyhow, ensure};
use atoll_tests::costly::{
    aliases_of_a_text, containers, deployment_of_empty_messages, empty_messages, groups, keys, labels, quoted, valid,
    valid_deployment, wrong_subjects,
};
use atoll_tests::kubectl::SOON;
use atoll_tests::{HostCluster, Route, eventually};

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
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?dryRun=All";

/// Bodies up to this length, in bytes, do not wait for their turn because of their length.
const SHORT: usize = 256 << 10;

/// None of these reaches the host, which would need minutes for each: it lists what is wrong with each element, and copies
/// the whole text for each error (`aggregate.Error` in apimachinery's `pkg/util/errors`).
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
        let answer = own.send_bytes("POST", path, media, &body)?;
        answer.refused(413, "RequestEntityTooLarge", "the object has too many fields").with_context(|| what)?;
    }
    let options = format!("kind: DeleteOptions\napiVersion: v1\nx:\n{}", "-\n".repeat(100_000));
    let answer = own.send_as("DELETE", &format!("{CONFIG_MAPS}/none"), YAML, &options)?;
    answer.refused(413, "RequestEntityTooLarge", "limit is 65536")?;
    // These do, and the host needs some hundred milliseconds for each. Its refusal says how long it took.
    let costly = containers("{}", 500);
    let answer = own.send("POST", PODS, &costly)?;
    answer.refused(422, "Invalid", "spec.containers[499].name: Required value")?;
    for _ in 0..10 {
        own.send("POST", PODS, &costly)?;
    }
    for (method, path, media, body) in [
        ("POST", PODS, JSON, costly.as_str()),
        // A small patch of a large object may cost as much.
        ("PATCH", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt?dryRun=All", MERGE_PATCH, "{}"),
    ] {
        let answer = own.send_as(method, path, media, body)?;
        answer.refused(429, "TooManyRequests", "this cluster has sent too many objects").with_context(|| method)?;
    }
    // Other bodies of the cluster are not limited, nor are those of other clusters.
    let small = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
    for curl in [&own, &other] {
        let answer = curl.send("POST", &format!("{CONFIG_MAPS}?dryRun=All"), small)?;
        ensure!(answer.code == 201, "{answer:?}");
    }
    let answer = other.send("POST", PODS, &costly)?;
    ensure!(answer.code == 422, "{answer:?}");
    Ok(())
}

/// The host would need minutes for each of these. It gets a sample first, and its refusal of that is the response.
pub(super) fn samples_come_first(host: Arc<HostCluster>) -> anyhow::Result<()> {
    const MANY: usize = 20_000;
    const OBJECT: &str = "/api/v1/namespaces/default/configmaps/costly";
    let (site, cluster, _) = site(host, "sampled", "")?;
    let kubectl = site.administrator(&cluster, Route::Path)?;
    let own = site.curl_like(&kubectl, &cluster, Route::Path)?;
    let kept = keys(MANY, "!");
    let answer = own.send("POST", CONFIG_MAPS, &kept)?;
    ensure!(answer.code == 201 && answer.warning.is_empty(), "{} {:.300}", answer.code, answer.body);
    let stored: serde_json::Value = serde_json::from_str(&answer.body)?;
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
        let answer = own.send_bytes(method, path, media, &body)?;
        ensure!(answer.code == 422, "{what}: {} {:.300}", answer.code, answer.body);
        ensure!(answer.warning.contains("a random sample"), "{what}: no warning, but {:?}", answer.warning);
        ensure!(answer.body.len() < 1 << 20, "{what}: {} bytes", answer.body.len());
    }

    // The host would name all errors of such a name.
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

    // Unknown members cannot keep others out of a sample.
    let unknown: Vec<_> = (0..200).map(|member| format!(r#""x{member}":0"#)).collect();
    let unknown = format!(r#""spec":{{{},"#, unknown.join(","));
    let hidden = containers(r#"{"name":"a","image":"a"}"#, 1000).replace(r#""spec":{"#, &unknown);
    let answer = own.send("POST", PODS, &hidden)?;
    answer.refused(400, "BadRequest", "unknown field")?;

    // Nor do messages that the client chooses decide.
    let named = labels(MANY).replacen(r#":"!""#, r#":"admission webhook \"a\" strict decoding error""#, 1);
    for (method, path, media) in
        [("POST", CONFIG_MAPS, JSON), ("PATCH", OBJECT, MERGE_PATCH), ("PATCH", OBJECT, STRATEGIC)]
    {
        for body in [named.clone(), named.replacen('{', r#"{"unknown":0,"#, 1)] {
            let answer = own.send_as(method, path, media, &body)?;
            ensure!(answer.code == 422, "{method} {media}: {} {:.300}", answer.code, answer.body);
            // There may be another warning before that of the sample.
            ensure!(answer.body.len() < 1 << 20, "{method} {media}: {} bytes", answer.body.len());
        }
    }

    // Samples of valid objects are valid.
    for (path, object) in valid() {
        for _ in 0..3 {
            let answer = own.send("POST", &format!("{path}?dryRun=All"), &object)?;
            ensure!(answer.code == 201 && answer.warning.is_empty(), "{path}: {} {:.500}", answer.code, answer.body);
        }
    }

    for _ in 0..3 {
        let path = "/apis/apps/v1/namespaces/default/deployments?dryRun=All";
        let answer = own.send_bytes("POST", path, PROTOBUF, &valid_deployment())?;
        ensure!(answer.code == 201 && answer.warning.is_empty(), "{} {:.500}", answer.code, answer.body);
    }
    // A client that is newer than the host writes members that the host ignores.
    let (path, slice) = &valid()[3];
    let newer = slice.replace(r#""ready":true"#, r#""ready":true,"newer":true"#);
    let answer = own.send("POST", &format!("{path}?dryRun=All"), &newer)?;
    ensure!(answer.code == 201 && answer.warning.contains("unknown field"), "{} {:.500}", answer.code, answer.body);
    // So are duplicates of an apply in JSON.
    let notes = "notes ".repeat(400);
    let twice = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"twice","annotations":{{"a":"{notes}"}}}},"data":{{"a":"1","a":"2"}}}}"#
    );
    let path = "/api/v1/namespaces/default/configmaps/twice?fieldManager=a&dryRun=All";
    let answer = own.send_as("PATCH", path, APPLY, &twice)?;
    ensure!(answer.code == 201, "{} {:.500}", answer.code, answer.body);

    // If only a few values are invalid, the host gets the whole, and names them all.
    let few = kept.replace(r#""k9000":"#, r#""!":"#).replace(r#""k19999":"#, r#""?":"#);
    let answer = own.send("PUT", OBJECT, &few)?;
    answer.refused(422, "Invalid", "data[!]: Invalid value")?;
    answer.refused(422, "Invalid", "data[?]: Invalid value")?;
    ensure!(answer.warning.is_empty(), "{:?}", answer.warning);

    // Some of these responses are so long that the cluster must wait afterwards.
    for (path, object) in quoted() {
        let answer = eventually(SOON, || {
            let answer = own.send("POST", path, &object)?;
            ensure!(answer.code == 422, "{path}: {} {:.300}", answer.code, answer.body);
            Ok(answer)
        })?;
        ensure!(answer.warning.contains("a random sample"), "{path}: no warning, but {:?}", answer.warning);
        ensure!(answer.body.len() < 4 << 20, "{path}: {} bytes", answer.body.len());
    }
    Ok(())
}

/// 20 KB of YAML become 8 MiB of JSON in each of these requests, if all aliases are expanded.
pub(super) fn aliases_are_expanded_within_bounds(host: Arc<HostCluster>) -> anyhow::Result<()> {
    const AT_ONCE: usize = 20;
    let (site, cluster, _) = site(host, "aliases", "")?;
    let kubectl = site.administrator(&cluster, Route::Path)?;
    let curl = site.curl_like(&kubectl, &cluster, Route::Path)?;
    let path = format!("{CONFIG_MAPS}/a?fieldManager=aliases");
    let memory = Memory::measure(&site)?;
    // The first ones would be longer than any body may be. The others reach the host one by one, which calls it an error of
    // its own that a ConfigMap has no such fields; those that wait for too long are told so.
    for (count, codes) in [(480, &[400][..]), (170, &[429, 500])] {
        let body = aliases_of_a_text(count);
        ensure!(body.len() < 20_000, "{} bytes", body.len());
        let answers = thread::scope(|scope| {
            let sent: Vec<_> =
                (0..AT_ONCE).map(|_| scope.spawn(|| curl.send_as("PATCH", &path, APPLY, &body))).collect();
            sent.into_iter()
                .map(|sent| sent.join().map_err(|_| anyhow!("a client panicked"))?)
                .collect::<anyhow::Result<Vec<_>>>()
        })?;
        memory.is_bounded()?;
        for answer in answers {
            ensure!(codes.contains(&answer.code), "{count} aliases: {} {:.300}", answer.code, answer.body);
        }
    }
    let answer = curl.get(CONFIG_MAPS)?;
    ensure!(answer.code == 200, "{answer:?}");
    Ok(())
}
