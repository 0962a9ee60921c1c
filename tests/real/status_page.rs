//! The status in a browser: what the operator sees without a terminal.

use std::fmt::Write as _;
use std::process::Command;
use std::sync::Arc;

use anyhow::ensure;
use atoll_tests::kubectl::{self, CONDITION_TIMEOUT};
use atoll_tests::{Credentials, Curl, HostCluster, Kubectl, Nodes, Page, Route, Site, eventually, site};
use libtest_mimic::Trial;

use crate::case;

pub(crate) fn trial(host: Option<&Arc<HostCluster>>) -> Trial {
    case("status_page::browsers_show_the_status", host, browsers_show_the_status)
}

const AGENT: &str = "site-w";
/// A cluster that works.
const SHOWN: &str = "shown";
/// A cluster whose root namespace the host refuses, with [`MESSAGE`].
const MARKED: &str = "marked";
const NODES: Nodes = Nodes::Location("beijing");
/// A host can say anything.
const MESSAGE: &str = r#"<script>document.title="owned"</script><b>&amp; it's</b>"#;
/// More than the cluster may send at once.
const MAX_POSTS: usize = 40;

fn browsers_show_the_status(host: &HostCluster) -> anyhow::Result<()> {
    let entries = [SHOWN, MARKED].map(|name| {
        let ca = format!("clusters/{name}/client-ca");
        format!("{{name: {name}, agents: [{AGENT}], clientCA: {{certificate: {ca}.crt, key: {ca}.key}}}}")
    });
    let site = Site::start(&entries.each_ref().map(String::as_str), &[SHOWN, MARKED])?;
    let kubectl = administrator(&site)?;
    let files = Credentials::of(&kubectl)?;
    let curl = Curl::new(Route::Path, SHOWN, site.ports, &files.authority);
    let curl = curl.with_certificate(&files.certificate, &files.key);

    // No agent is connected. The page of the proxy-server counts equal errors, but not those of clients.
    for _ in 0..2 {
        curl.get("/api/v1/nodes")?.refused(503, "ServiceUnavailable", "has no agent connected")?;
    }
    // HTTP/2 has no such header.
    let wrong = curl.clone().anonymous().with(&["--http1.1", "--header", "Connection: authorization"]);
    wrong.get("/api")?.refused(400, "BadRequest", "Connection header")?;
    let server = Page::open(&format!("http://127.0.0.1:{}/statusz", site.ports.admin))?;
    server.is_harmless()?;
    let errors = server.table("Last errors")?;
    let [_, error] = errors.as_slice() else { anyhow::bail!("{errors:?}") };
    ensure!(error[2..6] == ["2", "503", "tunnel", "ServiceUnavailable"], "{error:?}");
    ensure!(error[0] == SHOWN && error[6].starts_with("cluster shown has no agent connected"), "{error:?}");
    ensure!(server.cell("Clusters", MARKED, "STREAMS")?.starts_with("0/"), "{}", server.dom);
    let sum = Command::new("sha256sum").arg(site.file("revocations.yaml")).output()?;
    let digest = server.cell("Revocations", "0", "SHA-256 OF THE LIST")?;
    ensure!(String::from_utf8_lossy(&sum.stdout).starts_with(&digest) && digest.len() == 64, "{digest} {sum:?}");

    let shown = refuse_root(host).and_then(|()| agent_shows(&site, host, &kubectl, &curl));
    host.kubectl().ok(&["delete", "validatingadmissionpolicybindings,validatingadmissionpolicies", "refuse-marked"])?;
    shown
}

/// Starts the agent, makes what its page shows, and opens it.
fn agent_shows(site: &Site, host: &HostCluster, kubectl: &Kubectl, curl: &Curl) -> anyhow::Result<()> {
    let body = format!(
        "host: {{kubeconfig: {}}}\nhub: {{memoryMiB: 32}}\nvirtualClusters: [{}, {}]",
        host.agent_kubeconfig().display(),
        NODES.entry(SHOWN),
        NODES.entry(MARKED),
    );
    let mut agent = site.agent(AGENT, &body)?;
    agent.printed(&format!("the virtual cluster is provisioned cluster={SHOWN}\n"))?;
    let admin = site.admin(AGENT)?;
    let text = Curl::plain(admin.trim_start_matches("http://"));
    let nodes =
        eventually(CONDITION_TIMEOUT, || kubectl.ok(&["get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"]))?;
    let watch = kubectl.start(&["get", "configmaps", "-n", "default", "--watch"])?;
    let page = exceed_a_limit(curl).and_then(|()| {
        eventually(CONDITION_TIMEOUT, || {
            let status = text.get("/status")?.json()?;
            // They are in the order of their names.
            let [marked, shown] = [0, 1].map(|at| &status["virtualClusters"][at]);
            ensure!(marked["message"].as_str().is_some_and(|message| message.contains(MESSAGE)), "{status}");
            ensure!(shown["shares"]["watches"]["used"].as_u64() == Some(1), "{status}");
            Ok(())
        })?;
        Page::open(&format!("{admin}/statusz"))
    });
    kubectl::end(watch)?;
    let page = page?;

    page.is_harmless()?;
    ensure!(page.dom.contains("<title>Status of proxy-agent</title>"), "{}", page.dom);
    let clusters = |row: &str, column: &str| page.cell("Virtual clusters", row, column);
    ensure!(clusters(SHOWN, "READY")? == "yes" && clusters(SHOWN, "NAMESPACES")? == "4", "{}", page.dom);
    let names = clusters(SHOWN, "NODE NAMES")?;
    ensure!(names.split(',').eq(nodes.split_whitespace()), "{names} instead of {nodes}");
    ensure!(clusters(SHOWN, "NODES")? == names.split(',').count().to_string(), "{}", page.dom);
    // The browser shows the markup as text.
    let message = clusters(MARKED, "MESSAGE")?;
    ensure!(clusters(MARKED, "READY")? == "no" && message.contains(MESSAGE), "{message}");
    let watches = page.cell("Shares in use", SHOWN, "WATCHES")?;
    ensure!(watches.starts_with("1/"), "{watches}");
    let error = |column: &str| page.cell("Last errors", SHOWN, column);
    ensure!(error("CODE")? == "429" && error("REASON")? == "TooManyRequests", "{}", page.dom);
    ensure!(error("MESSAGE")?.starts_with("this cluster has sent too many objects"), "{}", page.dom);

    let index = Page::open(&admin)?;
    index.is_harmless()?;
    ensure!(index.dom.contains(r#"<a href="/statusz">/statusz</a>"#), "{}", index.dom);
    // Without a browser, the same address has the text.
    let wide = text.get("/statusz?wide")?.body;
    ensure!(wide.starts_with("proxy-agent ") && wide.contains("LAST ERRORS OF") && wide.contains(MESSAGE), "{wide}");
    Ok(())
}

/// Makes the host refuse the root namespace of [`MARKED`].
fn refuse_root(host: &HostCluster) -> anyhow::Result<()> {
    let message = serde_json::Value::from(MESSAGE);
    let mut policy = String::from("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n");
    write!(
        policy,
        "metadata: {{name: refuse-marked}}\n\
         spec:\n\
         \x20 matchConstraints: {{resourceRules: [{{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], \
         resources: [namespaces]}}]}}\n\
         \x20 matchConditions: [{{name: marked, expression: \"object.metadata.name == 'atoll-root-marked'\"}}]\n\
         \x20 validations: [{{expression: \"false\", message: {message}}}]\n\
         ---\n\
         apiVersion: admissionregistration.k8s.io/v1\n\
         kind: ValidatingAdmissionPolicyBinding\n\
         metadata: {{name: refuse-marked}}\n\
         spec: {{policyName: refuse-marked, validationActions: [Deny]}}\n"
    )?;
    let kubectl = host.kubectl();
    kubectl.ok_with(&["create", "-f", "-"], &policy)?;
    // kube-apiserver loads policies after a while.
    eventually(CONDITION_TIMEOUT, || {
        let refused = kubectl.fails(&["create", "namespace", "atoll-root-marked", "--dry-run=server"])?;
        ensure!(refused.contains("owned"), "{refused}");
        Ok(())
    })
}

/// Sends objects with many errors, each of which costs the host much, until the agent refuses one.
fn exceed_a_limit(curl: &Curl) -> anyhow::Result<()> {
    let containers = vec!["{}"; 500].join(",");
    let pod = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a"}},"spec":{{"containers":[{containers}]}}}}"#
    );
    let pods = "/api/v1/namespaces/default/pods?dryRun=All";
    for _ in 0..MAX_POSTS {
        let response = curl.send("POST", pods, &pod)?;
        if response.code == 429 {
            return Ok(());
        }
        ensure!(response.code == 422, "{} {:.300}", response.code, response.body);
    }
    anyhow::bail!("{MAX_POSTS} objects were not limited")
}

fn administrator(site: &Site) -> anyhow::Result<Kubectl> {
    let (config, file) = (site.file("server.yaml"), site.file("shown.kubeconfig"));
    let [config, kubeconfig] = [&config, &file].map(|path| path.display().to_string());
    site::atoll(&["kubeconfig", SHOWN, "--admin", "--server-config", &config, "--direct", "-o", &kubeconfig])?;
    Ok(Kubectl::new(file))
}
