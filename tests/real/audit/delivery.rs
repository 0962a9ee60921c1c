//! Where events go: a webhook, which may fail, and a file, which may be replaced. And changes while the process runs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::process::Process;
use atoll_tests::{Curl, HostCluster, eventually, paths};
use serde_json::Value;

use super::{Audited, events};

pub(super) fn a_webhook_gets_the_events(host: &HostCluster) -> anyhow::Result<()> {
    let port = paths::free_port();
    let mut receiver = None;
    let webhook =
        ", webhook: {kubeconfig: DIR/webhook.kubeconfig, initialBackoff: 100ms, batch: {maxWait: 1s, maxSize: 50}}";
    let mut audited = Audited::start(host, "hooked", webhook, |dir| {
        receiver = Some(start_receiver(dir, port)?);
        Ok(())
    })?;
    let (directory, admin) = (audited.logs.parent().context("a directory")?.to_owned(), audited.admin.clone());
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},
                  "spec":{"containers":[{"name":"c","image":"c"}]}}"#;
    admin.ok_with(&["create", "-f", "-"], pod)?;
    admin.ok(&["wait", "-n", "default", "pod/p", "--for=condition=Ready", "--timeout=30s"])?;
    admin.ok(&["exec", "-n", "default", "p", "--", "echo", "what-was-typed"])?;
    let exec = |event: &Value| event["objectRef"]["subresource"] == "exec";
    eventually(CONDITION_TIMEOUT, || {
        for events in [received(&directory, 200)?, events(&audited.log())?] {
            let stages: Vec<_> = events.iter().filter(|event| exec(event)).map(|event| &event["stage"]).collect();
            // The default policy omits the first stage.
            ensure!(stages == ["ResponseStarted", "ResponseComplete"], "{stages:?}");
            let codes: Vec<_> =
                events.iter().filter(|event| exec(event)).map(|event| &event["responseStatus"]["code"]).collect();
            ensure!(codes == [101, 101], "{codes:?}");
        }
        Ok(())
    })?;

    // The webhook fails. Requests do not, and the loss is counted.
    std::fs::write(directory.join("down"), "")?;
    admin.ok(&["create", "configmap", "lost", "-n", "default"])?;
    let lost = "atoll_audit_lost_events_total{backend=\"webhook\",cluster=\"hooked\",reason=\"failed\"} ";
    eventually(CONDITION_TIMEOUT, || {
        let metrics = metrics(&audited)?;
        let count = metrics.lines().find_map(|line| line.strip_prefix(lost)).context("no metric")?;
        ensure!(count != "0", "nothing is lost");
        Ok(())
    })?;
    std::fs::remove_file(directory.join("down"))?;
    ensure!(audited.site.server.log().contains("audit events are lost"), "no line in the log");

    // logrotate moves the file. The policy changes: nothing but changes of ConfigMaps.
    std::fs::rename(audited.log(), directory.join("moved"))?;
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
                  - {level: Metadata, verbs: [create, delete], resources: [{resources: [configmaps]}]}\n";
    std::fs::write(directory.join("policy.yaml"), policy)?;
    let config = audited.site.file("server.yaml");
    let text = std::fs::read_to_string(&config)?;
    let policy_file = format!("audit: {{policyFile: {}/policy.yaml, log:", directory.display());
    std::fs::write(&config, text.replace("audit: {log:", &policy_file))?;
    audited.site.server.printed("the new `audit` settings are in force")?;
    admin.ok(&["get", "configmaps", "-n", "default"])?;
    admin.ok(&["create", "configmap", "kept", "-n", "default"])?;
    eventually(CONDITION_TIMEOUT, || {
        let found = events(&audited.log())?;
        let has = |verb: &str| found.iter().any(|event| event["verb"] == verb && event["objectRef"]["name"] == "kept");
        ensure!(has("create"), "{found:?}");
        Ok(())
    })?;
    // What is written last is not lost.
    admin.ok(&["delete", "configmap", "kept", "-n", "default"])?;
    audited.site.server.terminate()?;
    let of_file = events(&audited.log())?;
    let of_webhook = received(&directory, 200)?;
    for events in [&of_file, &of_webhook] {
        let last = events.last().context("no event")?;
        ensure!(last["verb"] == "delete" && last["objectRef"]["name"] == "kept", "{last}");
    }
    ensure!(of_file.iter().all(|event| event["objectRef"]["resource"] == "configmaps"), "the policy is not in force");
    Ok(())
}

/// Starts the webhook, and writes its kubeconfig.
fn start_receiver(dir: &Path, port: u16) -> anyhow::Result<Process> {
    let text = |name: &str| dir.join(name).display().to_string();
    let (certificate, key) = (text("webhook.crt"), text("webhook.key"));
    let words = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=webhook",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
        &key,
        "-out",
        &certificate,
    ];
    let output = Command::new("openssl").args(words).output().context("cannot run openssl")?;
    ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: webhook\n\
         clusters: [{{name: webhook, cluster: {{server: \"https://127.0.0.1:{port}/events\", certificate-authority: webhook.crt}}}}]\n\
         users: [{{name: webhook, user: {{token: secret}}}}]\n\
         contexts: [{{name: webhook, context: {{cluster: webhook, user: webhook}}}}]\n"
    );
    std::fs::write(dir.join("webhook.kubeconfig"), kubeconfig)?;
    let program = paths::workspace().join("tests/real/audit/receiver.py").display().to_string();
    let (directory, port) = (dir.display().to_string(), port.to_string());
    Process::start("receiver", Path::new("python3"), &[&program, &directory, &port], dir.join("receiver.log"))
}

/// The events in requests to which the webhook has responded with this code.
fn received(directory: &Path, code: u16) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(directory.join("received"))?;
    let lists = text.lines().filter_map(|line| line.strip_prefix(&format!("{code} ")));
    let mut events = Vec::new();
    for list in lists {
        let list: Value = serde_json::from_str(list)?;
        ensure!(list["kind"] == "EventList" && list["apiVersion"] == "audit.k8s.io/v1", "{list}");
        events.extend(list["items"].as_array().context("no items")?.iter().cloned());
    }
    Ok(events)
}

fn metrics(audited: &Audited) -> anyhow::Result<String> {
    let address = format!("127.0.0.1:{}", audited.site.ports.admin);
    Ok(Curl::plain(&address).get("/metrics")?.body)
}
