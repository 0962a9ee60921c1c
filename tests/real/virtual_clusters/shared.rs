//! Cluster-scoped objects that virtual clusters share: one object on the host, with separate labels and annotations for
//! each.
//!
//! Each test has its own names, because all share one host.

use std::io::{BufRead, BufReader};

use anyhow::{Context, ensure};
use atoll_tests::curl::Response;
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::kubectl::{CONDITION_TIMEOUT, end};
use atoll_tests::{Kubectl, Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU};

/// Two clusters and their host.
struct Three {
    beijing: Kubectl,
    hangzhou: Kubectl,
    host: Kubectl,
}

// === impl Three ===

impl Three {
    fn new(site: &VirtualSite) -> anyhow::Result<Self> {
        Ok(Self {
            beijing: site.administrator(BEIJING, Route::Proxy)?,
            hangzhou: site.administrator(HANGZHOU, Route::Path)?,
            host: site.host().kubectl(),
        })
    }

    fn both(&self) -> [(&Kubectl, &'static str); 2] {
        [(&self.beijing, "beijing"), (&self.hangzhou, "hangzhou")]
    }
}

/// A definition of `gears` in `group`, whose field `teeth` has this type. A label names its owner.
fn gears(group: &str, owner: &str, teeth: &str) -> String {
    let spec = json!({"type": "object", "properties": {"teeth": {"type": teeth}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let names = json!({"kind": "Gear", "plural": "gears"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gears.{group}"), "labels": {"owner": owner}},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    })
    .to_string()
}

fn gear(group: &str, name: &str) -> String {
    let metadata = json!({"name": name, "namespace": "default"});
    json!({"apiVersion": format!("{group}/v1"), "kind": "Gear", "metadata": metadata, "spec": {"teeth": 3}}).to_string()
}

fn class(name: &str, owner: &str, value: i64) -> String {
    let metadata = json!({"name": name, "labels": {"owner": owner}});
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value})
        .to_string()
}

fn disks(name: &str, more: &Value) -> String {
    let mut class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "example.com/disks", "parameters": {"type": "fast"},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        class[key] = value.clone();
    }
    class.to_string()
}

fn read(kubectl: &Kubectl, what: &str) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&kubectl.ok(&["get", what, "-o=json", "--show-managed-fields"])?)?)
}

/// No data of Atoll, and no data of the other cluster.
fn is_clean(kubectl: &Kubectl, what: &str, neighbour: &str) -> anyhow::Result<()> {
    for form in ["json", "yaml", "wide"] {
        let shown = kubectl
            .ok(&["get", what, "-o", form, "--show-labels", "--show-managed-fields"])
            .or_else(|_| kubectl.ok(&["get", what, "-o", form, "--show-managed-fields"]))?;
        for word in ["atoll", neighbour] {
            ensure!(!shown.contains(word), "{what} shows {word}: {shown}");
        }
    }
    Ok(())
}

/// Both clusters apply the same definition (client-side and server-side), and create custom resources. Then each
/// deletes the definition.
pub(super) fn definitions_are_had_twice(site: &VirtualSite) -> anyhow::Result<()> {
    for (how, group) in [(&["apply"][..], "client.example.com"), (&["apply", "--server-side"], "server.example.com")] {
        had_twice(&Three::new(site)?, how, group)?;
    }
    Ok(())
}

fn had_twice(three: &Three, how: &[&str], group: &str) -> anyhow::Result<()> {
    let Three { beijing, hangzhou, host } = three;
    let (name, crd) = (format!("gears.{group}"), format!("crd/gears.{group}"));
    let apply = |kubectl: &Kubectl, owner: &str| {
        kubectl.ok_with(&[how, &["-f", "-"]].concat(), &gears(group, owner, "integer"))
    };
    let output = apply(beijing, "beijing")?;
    ensure!(output.contains("created") || output.contains("serverside-applied"), "{output}");
    beijing.ok(&["wait", "--for=condition=Established", &crd])?;
    eventually(CONDITION_TIMEOUT, || beijing.ok_with(&["create", "-f", "-"], &gear(group, "own-beijing")))?;

    // The other cluster does not have it.
    ensure!(
        !hangzhou.ok(&["get", "crd", "-o=name"])?.contains(&name),
        "the list contains a definition of another cluster"
    );
    ensure!(
        hangzhou.fails(&["get", &crd])?.contains("(NotFound)"),
        "the cluster can read a definition of another cluster"
    );
    ensure!(!hangzhou.ok(&["api-resources"])?.contains(group), "discovery contains a resource of another cluster");
    for path in [format!("/apis/{group}"), format!("/apis/{group}/v1"), format!("/apis/{group}/v1/gears")] {
        ensure!(hangzhou.fails(&["get", "--raw", &path])?.contains("NotFound"), "{path} is served");
    }
    for path in ["/apis", "/openapi/v3", "/openapi/v2"] {
        ensure!(!hangzhou.ok(&["get", "--raw", path])?.contains(group), "{path} contains {group}");
        ensure!(beijing.ok(&["get", "--raw", path])?.contains(group), "{path} does not contain {group}");
    }

    let output = apply(hangzhou, "hangzhou")?;
    ensure!(output.contains("created") || output.contains("serverside-applied"), "{output}");
    eventually(CONDITION_TIMEOUT, || hangzhou.ok_with(&["create", "-f", "-"], &gear(group, "own-hangzhou")))?;
    for (kubectl, owner) in three.both() {
        let neighbour = if owner == "beijing" { "hangzhou" } else { "beijing" };
        ensure!(read(kubectl, &crd)?["metadata"]["labels"] == json!({"owner": owner}), "no label of {owner}");
        is_clean(kubectl, &crd, neighbour)?;
        is_clean(kubectl, "crd", neighbour)?;
        let selected = |of: &str| kubectl.ok(&["get", "crd", "-o=name", "-l", &format!("owner={of}")]);
        ensure!(selected(owner)?.contains(&name) && !selected(neighbour)?.contains(&name), "host labels match");
        let gears = kubectl.ok(&["get", &name, "-A", "-o=name"])?;
        ensure!(gears.contains(&format!("own-{owner}")) && !gears.contains(neighbour), "{owner} has {gears}");
        // A repeated apply changes nothing. (The first apply after the creation takes over the ownership.)
        apply(kubectl, owner)?;
        let version = read(kubectl, &crd)?["metadata"]["resourceVersion"].clone();
        apply(kubectl, owner)?;
        ensure!(read(kubectl, &crd)?["metadata"]["resourceVersion"] == version, "an apply without a change writes");
    }

    let mut watch = beijing.start(&["get", "crd", "--watch-only", "--output-watch-events"])?;
    let mut lines = BufReader::new(watch.stdout.take().context("no stdout")?).lines();
    eventually(CONDITION_TIMEOUT, || {
        // The watch has begun when it contains a change.
        beijing.ok(&["annotate", &crd, "--overwrite", "watched=now"])?;
        beijing.ok(&["annotate", &crd, "watched-"])
    })?;
    beijing.ok(&["delete", &crd])?;
    let mut seen = String::new();
    while !(seen.contains("DELETED") && seen.contains(&name)) {
        seen.push_str(&lines.next().with_context(|| format!("the watch ended:\n{seen}"))??);
        seen.push('\n');
    }
    end(watch)?;
    ensure!(beijing.fails(&["get", &crd])?.contains("(NotFound)"), "it still exists");
    ensure!(!beijing.ok(&["get", "crd", "-o=name"])?.contains(&name), "the list still contains it");
    eventually(CONDITION_TIMEOUT, || {
        ensure!(beijing.fails(&["get", &name])?.contains("resource"), "it is still served");
        Ok(())
    })?;
    ensure!(
        hangzhou.ok(&["get", &name, "-A", "-o=name"])?.contains("own-hangzhou"),
        "the objects of the other cluster do not exist"
    );
    let left = host.ok(&["get", &name, "-A", "-o=name"])?;
    ensure!(!left.contains("own-beijing"), "left on the host: {left}");
    hangzhou.ok(&["delete", &crd])?;
    ensure!(host.fails(&["get", &crd])?.contains("(NotFound)"), "it still exists on the host");
    Ok(())
}

/// A cluster cannot change an object that another one uses. The agent applies a change that all clusters request.
pub(super) fn changes_are_agreed(site: &VirtualSite) -> anyhow::Result<()> {
    let three = Three::new(site)?;
    let Three { beijing, hangzhou, host } = &three;
    let (group, crd) = ("agreed.example.com", "crd/gears.agreed.example.com");
    let apply = |kubectl: &Kubectl, owner: &str, teeth: &str| {
        kubectl.run_with(&["apply", "-f", "-"], &gears(group, owner, teeth))
    };
    let teeth = || {
        let path = "-o=jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.teeth.type}";
        host.ok(&["get", crd, path])
    };
    apply(beijing, "beijing", "integer")?;
    // If no other cluster uses the object, it can.
    ensure!(apply(beijing, "beijing", "number")?.code == 0 && teeth()? == "number", "the only owner cannot change it");
    let refused = apply(hangzhou, "hangzhou", "integer")?;
    ensure!(
        refused.stderr.contains("Conflict") && refused.stderr.contains("created it with a different specification"),
        "{refused:?}"
    );
    ensure!(apply(hangzhou, "hangzhou", "number")?.code == 0, "an identical request is refused");
    for (kubectl, owner, wanted) in [(beijing, "beijing", "string"), (hangzhou, "hangzhou", "boolean")] {
        let refused = apply(kubectl, owner, wanted)?;
        ensure!(
            refused.stderr.contains("Conflict") && refused.stderr.contains("others use it as it is"),
            "{refused:?}"
        );
        ensure!(!refused.stderr.contains("atoll"), "{refused:?}");
    }
    // A repeated request does not change the resource version.
    let version = || host.ok(&["get", crd, "-o=jsonpath={.metadata.resourceVersion}"]);
    let before = version()?;
    ensure!(apply(beijing, "beijing", "string")?.code != 0 && version()? == before, "a repeated request writes");
    ensure!(teeth()? == "number", "it changed although one cluster has not requested it");
    ensure!(
        apply(hangzhou, "hangzhou", "string")?.code == 0 && teeth()? == "string",
        "all clusters have requested the change, but it is not applied"
    );
    ensure!(apply(beijing, "beijing", "string")?.code == 0, "a request without a change is refused");
    for kubectl in [beijing, hangzhou] {
        kubectl.ok(&["delete", crd])?;
    }
    Ok(())
}

/// All kinds of writes of labels, annotations and other fields.
pub(super) fn classes_take_every_write(site: &VirtualSite) -> anyhow::Result<()> {
    let three = Three::new(site)?;
    for (kubectl, owner) in three.both() {
        kubectl.ok_with(&["create", "-f", "-"], &class("urgent", owner, 7))?;
        let again = kubectl.run_with(&["create", "-f", "-"], &class("urgent", owner, 7))?;
        ensure!(again.stderr.contains("AlreadyExists"), "{again:?}");
        let labels = |expected: Value| {
            let labels = read(kubectl, "priorityclass/urgent")?["metadata"]["labels"].clone();
            ensure!(labels == expected, "{owner} has {labels}, not {expected}");
            anyhow::Ok(())
        };
        labels(json!({"owner": owner}))?;
        kubectl.ok(&["label", "priorityclass/urgent", "a=b"])?;
        labels(json!({"owner": owner, "a": "b"}))?;
        let patch =
            |kind: &str, patch: &str| kubectl.ok(&["patch", "priorityclass/urgent", "--type", kind, "-p", patch]);
        patch("merge", r#"{"metadata": {"labels": {"a": null, "m": "1"}}}"#)?;
        patch("strategic", r#"{"metadata": {"labels": {"s": "1"}}, "value": 7}"#)?;
        patch("json", r#"[{"op": "add", "path": "/metadata/labels/j", "value": "1"}]"#)?;
        labels(json!({"owner": owner, "m": "1", "s": "1", "j": "1"}))?;
        kubectl.ok_with(&["replace", "-f", "-"], &class("urgent", owner, 7))?;
        labels(json!({"owner": owner}))?;
        kubectl.ok_with(&["apply", "--server-side", "-f", "-"], &class("urgent", owner, 7))?;
        kubectl.ok(&["annotate", "priorityclass/urgent", "noted=yes"])?;
        is_clean(kubectl, "priorityclass/urgent", if owner == "beijing" { "hangzhou" } else { "beijing" })?;
        for (refused, why) in [
            (r#"{"metadata": {"labels": {"atoll.dev/shared": "x"}}}"#, "managed by the operator"),
            (
                r#"{"metadata": {"annotations": {"overlay.atoll.dev/ke-hangzhou": null, "left.atoll.dev/x": ""}}}"#,
                "managed by",
            ),
            (r#"{"metadata": {"finalizers": ["example.com/x"]}}"#, "shared by virtual clusters"),
            (r#"{"metadata": {"labels": {"not a label": "x"}}}"#, "Invalid value"),
        ] {
            let output = kubectl.fails(&["patch", "priorityclass/urgent", "--type=merge", "-p", refused])?;
            ensure!(output.contains(why), "{refused}: {output}");
        }
    }
    let output =
        three.beijing.fails(&["patch", "priorityclass/urgent", "--type=merge", "-p", r#"{"description": "x"}"#])?;
    ensure!(output.contains("others use it as it is"), "{output}");
    let dry = three.beijing.ok(&["delete", "priorityclass/urgent", "--dry-run=server"])?;
    ensure!(dry.contains("server dry run"), "{dry}");
    for (kubectl, _) in three.both() {
        kubectl.ok(&["delete", "priorityclass/urgent"])?;
    }
    ensure!(three.host.fails(&["get", "priorityclass/urgent"])?.contains("(NotFound)"), "it still exists on the host");
    Ok(())
}

/// Writes that would affect the whole host are refused, with a message that explains this.
pub(super) fn power_over_the_host_is_not_given(site: &VirtualSite) -> anyhow::Result<()> {
    let three = Three::new(site)?;
    let Three { beijing, hangzhou, host } = &three;
    for kubectl in [beijing, hangzhou] {
        kubectl.ok_with(&["apply", "-f", "-"], &disks("fast", &json!({})))?;
    }
    let mut webhook: Value = serde_json::from_str(&gears("power.example.com", "x", "integer"))?;
    webhook["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://example.com/"}}});
    let mut guarded: Value = serde_json::from_str(&gears("x.sigs.k8s.io", "x", "integer"))?;
    guarded["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, for a test"});
    let mut default: Value = serde_json::from_str(&class("everybodys", "x", 1))?;
    default["globalDefault"] = json!(true);
    for (refused, why) in [
        (disks("others", &json!({"provisioner": "kubernetes.io/no-provisioner"})), "sharedObjects.storageClasses"),
        (disks("others", &json!({"mountOptions": ["suid"]})), "mount option \"suid\""),
        (
            disks("others", &json!({"parameters": {"csi.storage.k8s.io/provisioner-secret-name": "x"}})),
            "would let the driver read a Secret",
        ),
        (webhook.to_string(), "is not served by virtual clusters: use \"None\""),
        (guarded.to_string(), "reserves API group"),
        (default.to_string(), "globalDefault would give"),
    ] {
        let output = beijing.run_with(&["create", "-f", "-"], &refused)?;
        ensure!(output.code != 0 && output.stderr.contains(why), "{refused}: {output:?}");
    }
    // Only the operator writes other kinds.
    let runtime = r#"{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"x"},"handler":"runc"}"#;
    let output = beijing.run_with(&["create", "-f", "-"], runtime)?;
    ensure!(output.stderr.contains("whose operator can change it"), "{output:?}");
    // Objects of the operator.
    host.ok_with(&["create", "-f", "-"], &class("operators", "operator", 3))?;
    let output = beijing.fails(&["delete", "priorityclass/operators"])?;
    ensure!(output.contains("created it for all virtual clusters"), "{output}");
    let output = beijing.run_with(&["replace", "-f", "-"], &class("operators", "operator", 4))?;
    ensure!(output.code != 0, "{output:?}");
    let output =
        beijing.fails(&["patch", "priorityclass/operators", "--type=merge", "-p", r#"{"description": "x"}"#])?;
    ensure!(output.contains("only its labels and annotations"), "{output}");
    beijing.ok(&["label", "priorityclass/operators", "mine=yes"])?;
    let labels =
        |kubectl: &Kubectl| anyhow::Ok(read(kubectl, "priorityclass/operators")?["metadata"]["labels"].clone());
    ensure!(labels(beijing)? == json!({"owner": "operator", "mine": "yes"}), "{}", labels(beijing)?);
    ensure!(labels(hangzhou)? == json!({"owner": "operator"}), "{}", labels(hangzhou)?);
    is_clean(beijing, "priorityclass/operators", HANGZHOU)?;
    host.ok(&["delete", "priorityclass/operators"])?;
    for kubectl in [beijing, hangzhou] {
        kubectl.ok(&["delete", "storageclass/fast"])?;
    }
    // The roles of the cluster authorize writes.
    let jane = site.user(BEIJING, "jane")?;
    let output = jane.run_with(&["create", "-f", "-"], &class("janes", "jane", 1))?;
    ensure!(output.stderr.contains("User \"jane\" cannot create resource \"priorityclasses\""), "{output:?}");
    for (verb, resource, expected) in
        [("create", "priorityclasses.scheduling.k8s.io", "yes"), ("create", "runtimeclasses.node.k8s.io", "no")]
    {
        let output = beijing.run(&["auth", "can-i", verb, resource])?;
        ensure!(output.stdout.starts_with(expected), "{verb} {resource}: {output:?}");
    }
    Ok(())
}

/// The host adds a finalizer to VolumeAttributesClasses. The agent refuses finalizers of clients, but must accept this
/// one in protobuf, which typed clients write.
pub(super) fn classes_get_the_hosts_finalizers(site: &VirtualSite) -> anyhow::Result<()> {
    if everywhere_kubeedge() {
        // Kubernetes 1.32 does not serve the kind by default.
        return Ok(());
    }
    let Three { beijing, host, .. } = Three::new(site)?;
    let curl = site.curl_like(&beijing, BEIJING, Route::Proxy)?;
    let field = |number: u8, text: &str| -> anyhow::Result<String> {
        let length =
            u8::try_from(text.len()).ok().filter(u8::is_ascii).context("the length does not fit into one byte")?;
        Ok(format!("{}{}{text}", char::from(number << 3 | 2), char::from(length)))
    };
    // The envelope is `Unknown` in runtime/generated.proto, with the fields of storage/v1/generated.proto.
    let create = |metadata: String| -> anyhow::Result<Response> {
        let of_type = field(1, "storage.k8s.io/v1")? + &field(2, "VolumeAttributesClass")?;
        let class =
            field(1, &metadata)? + &field(2, "csi.example.com")? + &field(3, &(field(1, "a")? + &field(2, "b")?))?;
        let body = format!("k8s\0{}{}", field(1, &of_type)?, field(2, &class)?);
        let path = "/apis/storage.k8s.io/v1/volumeattributesclasses";
        curl.send_as("POST", path, "application/vnd.kubernetes.protobuf", &body)
    };
    let refused = create(field(1, "kept")? + &field(14, "example.com/mine")?)?;
    refused.refused(422, "Invalid", "would be kept or deleted for all of them")?;
    let made = create(field(1, "finalized")?)?;
    ensure!(made.code == 201, "{}", made.body);
    let shown = read(&beijing, "vac/finalized")?;
    ensure!(shown["metadata"]["finalizers"] == json!(["kubernetes.io/vac-protection"]), "{shown}");
    // Reads, changes and writes the object.
    let mut changed = shown;
    changed["metadata"]["labels"] = json!({"mine": "yes"});
    beijing.ok_with(&["replace", "-f", "-"], &changed.to_string())?;
    is_clean(&beijing, "vac/finalized", HANGZHOU)?;
    beijing.ok(&["delete", "vac/finalized", "--timeout=30s"])?;
    host.fails(&["get", "vac/finalized"])?;
    Ok(())
}

/// Two clients that write different metadata do not overwrite each other. After both have written, the object does not
/// change.
pub(super) fn there_is_no_write_war(site: &VirtualSite) -> anyhow::Result<()> {
    let three = Three::new(site)?;
    let put = |kubectl: &Kubectl, owner: &str| {
        let wanted = class("pushed", owner, 5);
        if kubectl.run_with(&["create", "-f", "-"], &wanted)?.code != 0 {
            kubectl.ok_with(&["replace", "-f", "-"], &wanted)?;
        }
        anyhow::Ok(())
    };
    let version = || three.host.ok(&["get", "priorityclass/pushed", "-o=jsonpath={.metadata.resourceVersion}"]);
    for (kubectl, owner) in three.both() {
        put(kubectl, owner)?;
    }
    let settled = version()?;
    for _ in 0..3 {
        for (kubectl, owner) in three.both() {
            put(kubectl, owner)?;
        }
    }
    ensure!(version()? == settled, "a request without a change causes a write");
    for (kubectl, owner) in three.both() {
        ensure!(read(kubectl, "priorityclass/pushed")?["metadata"]["labels"] == json!({"owner": owner}), "{owner}");
        kubectl.ok(&["delete", "priorityclass/pushed"])?;
    }
    Ok(())
}
