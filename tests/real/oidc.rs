//! Users log in at an OpenID provider that we did not write, and kubectl runs `atoll login`.

mod provider;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, ensure};
use atoll_tests::curl::Curl;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::route::Route;
use atoll_tests::{HostCluster, Kubectl, Nodes, Site, eventually, paths, pause, site};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::case;
use provider::Provider;

const AGENT: &str = "site-o";
const CLUSTER: &str = "oidc-users";

/// The promise: a revocation is in force within this time.
const IN_FORCE: Duration = Duration::from_secs(10);

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![case("oidc::users_log_in_at_a_real_provider", host, users_log_in)]
}

fn users_log_in(host: &HostCluster) -> anyhow::Result<()> {
    let provider = Provider::start()?;
    let files = format!("clusters/{CLUSTER}/client-ca");
    let entry = format!(
        "{{name: {CLUSTER}, agents: [{AGENT}], clientCA: {{certificate: {files}.crt, key: {files}.key}}, oidc: {}}}",
        provider.configuration()
    );
    let site = Site::start(&[&entry], &[CLUSTER])?;
    let nodes = Nodes::Location("beijing").entry(CLUSTER);
    let kubeconfig = host.agent_kubeconfig();
    let body = format!("host: {{kubeconfig: {}}}\nvirtualClusters: [{nodes}]", kubeconfig.display());
    let mut agent = site.agent(AGENT, &body)?;
    agent.printed("the virtual cluster is provisioned")?;
    let admin = site.administrator(CLUSTER)?;
    eventually(CONDITION_TIMEOUT, || admin.ok(&["get", "ns"]).map(drop))?;
    admin.ok(&["create", "clusterrolebinding", "developers", "--clusterrole=view", "--group=oidc:developers"])?;

    let jane = log_in(&site, &provider)?;
    whoami(&jane)?;
    eventually(CONDITION_TIMEOUT, || jane.ok(&["get", "configmaps", "-n", "default"]).map(drop))?;
    let forbidden = jane.fails(&["create", "configmap", "x", "-n", "default"])?;
    ensure!(forbidden.contains("User \"oidc:jane@example.com\" cannot create"), "{forbidden}");

    let curl = Curl::new(Route::Path, CLUSTER, site.ports, &site.file("serving-ca.crt"));
    refuses(&curl, &provider)?;
    rotation(&site, &curl, &provider, &jane)?;
    revocation(&site, &curl, &provider, &jane)?;
    let log = site.server.log() + &agent.log();
    ensure!(!log.contains("eyJ"), "a log contains a token");
    Ok(())
}

/// Writes the kubeconfig, and logs in: in the browser of this machine, and then with a code on another device.
fn log_in(site: &Site, provider: &Provider) -> anyhow::Result<Kubectl> {
    let (config, kubeconfig) = (site.file("server.yaml"), site.file("oidc.kubeconfig"));
    site::atoll(&["kubeconfig", CLUSTER, "--server-config", text(&config)?, "--oidc", "-o", text(&kubeconfig)?])?;
    // The test cannot change the PATH of kubectl, so the kubeconfig has the whole path.
    let written = std::fs::read_to_string(&kubeconfig)?;
    let command = format!("command: {}", paths::binary("atoll").display());
    ensure!(written.contains("command: atoll"), "{written}");
    let directory = site.file("cache").display().to_string();
    let environment = format!("env: [{{name: KUBECACHEDIR, value: {directory}}}]");
    ensure!(written.contains("env: null"), "{written}");
    let patched = written.replace("command: atoll", &command).replace("env: null", &environment);
    std::fs::write(&kubeconfig, patched)?;

    run_login(provider, &directory, "authorization-code", |line| {
        let url = line.rsplit(' ').next().context("no URL")?;
        let page = provider.log_in(url, "jane@example.com")?;
        ensure!(page.contains("You are logged in"), "{page}");
        Ok(())
    })?;
    run_login(provider, &directory, "device-code", |line| {
        let code = line.rsplit(' ').next().context("no code")?;
        ensure!(line.contains("/device") && code.contains('-'), "{line}");
        provider.approve(code, "jane@example.com")
    })?;
    Ok(Kubectl::new(kubeconfig))
}

/// Runs `atoll login`. `person` does what its first line asks for.
fn run_login(
    provider: &Provider,
    directory: &str,
    grant_type: &str,
    person: impl FnOnce(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let authority = provider.authority().display().to_string();
    let mut child = Command::new(paths::binary("atoll"))
        .args(["login", "--force", "--issuer-url", &provider.issuer, "--client-id", "atoll"])
        .args(["--grant-type", grant_type, "--certificate-authority", &authority, "--cache-dir", directory])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut prompt = BufReader::new(child.stderr.take().context("no stderr")?);
    let mut line = String::new();
    prompt.read_line(&mut line)?;
    person(line.trim())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "atoll login --grant-type {grant_type} has failed");
    let credential: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(credential["kind"] == "ExecCredential" && credential["status"]["token"].is_string(), "{credential}");
    Ok(())
}

/// As on a kube-apiserver with the same settings.
fn whoami(jane: &Kubectl) -> anyhow::Result<()> {
    let shown: Value = serde_json::from_str(&jane.ok(&["auth", "whoami", "-o", "json"])?)?;
    let user = &shown["status"]["userInfo"];
    ensure!(user["username"] == "oidc:jane@example.com" && user["uid"] == "jane@example.com", "{user}");
    ensure!(user["groups"] == json!(["oidc:developers", "oidc:beijing", "system:authenticated"]), "{user}");
    Ok(())
}

/// Each mistake alone, in a token that the provider has signed.
fn refuses(curl: &Curl, provider: &Provider) -> anyhow::Result<()> {
    let get =
        |claims: &Value| curl.clone().with_token(&provider.sign(claims)?).get("/api/v1/namespaces/default/configmaps");
    let valid = provider.claims("jane@example.com")?;
    let code = get(&valid)?.code;
    ensure!(code == 200, "a valid token gets {code}");
    for (claim, value) in [
        ("aud", json!("other")),
        ("exp", json!(1)),
        ("nbf", json!(now()? + 3600)),
        ("email", json!("")),
        ("email", json!(7)),
        ("email_verified", json!(false)),
        ("groups", json!({"a": "b"})),
        // Another issuer: the host does not know it either.
        ("iss", json!("https://elsewhere.example.com")),
    ] {
        let mut claims = valid.clone();
        claims[claim] = value.clone();
        get(&claims)?.refused(401, "Unauthorized", "Unauthorized").with_context(|| format!("{claim}: {value}"))?;
    }
    let signed = provider.sign(&valid)?;
    let (content, _) = signed.rsplit_once('.').context("no signature")?;
    let claims = content.split('.').nth(1).context("no claims")?;
    // The header of the last one is {"alg":"none"}.
    let forged = [format!("{content}.AAAA"), format!("{content}."), format!("eyJhbGciOiJub25lIn0.{claims}.")];
    for token in forged {
        let response = curl.clone().with_token(&token).get("/api/v1/namespaces/default/configmaps")?;
        response.refused(401, "Unauthorized", "Unauthorized")?;
    }
    Ok(())
}

/// The provider replaces its key, so all tokens of the previous one are void.
fn rotation(site: &Site, curl: &Curl, provider: &Provider, jane: &Kubectl) -> anyhow::Result<()> {
    let path = "/api/v1/namespaces/default/configmaps";
    let old = provider.sign(&provider.claims("jane@example.com")?)?;
    // The proxy-server fetches keys at most every ten seconds.
    pause(Duration::from_secs(10));
    provider.rotate()?;
    let new = provider.sign(&provider.claims("jane@example.com")?)?;
    let code = curl.clone().with_token(&new).get(path)?.code;
    ensure!(code == 200, "the first token of a new key gets {code}");
    curl.clone().with_token(&old).get(path)?.refused(401, "Unauthorized", "Unauthorized")?;
    // The cached token is void, so the user must have it renewed. The refresh token is still valid.
    let cached = site.file("cache").join("atoll-login");
    for entry in std::fs::read_dir(cached)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let mut content: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
            content["id_token"] = json!(provider.sign(&{
                let mut claims = provider.claims("jane@example.com")?;
                claims["exp"] = json!(1);
                claims
            })?);
            std::fs::write(&path, content.to_string())?;
        }
    }
    jane.ok(&["get", "configmaps", "-n", "default"]).map(drop)
}

/// Tokens of a user from before a revocation, and their streams.
fn revocation(site: &Site, curl: &Curl, provider: &Provider, jane: &Kubectl) -> anyhow::Result<()> {
    let path = "/api/v1/namespaces/default/configmaps";
    let stolen = provider.sign(&provider.claims("jane@example.com")?)?;
    let thief = jane.with_token(&stolen, site.file("stolen.kubeconfig"))?;
    let mut watch = thief.start(&["get", "configmaps", "-n", "default", "--watch-only"])?;
    let config = site.file("server.yaml");
    pause(Duration::from_secs(2));
    ensure!(watch.try_wait()?.is_none(), "the watch has ended before the revocation");
    site::atoll(&["revoke", "user", "oidc:jane@example.com", "--cluster", CLUSTER, "--server-config", text(&config)?])?;
    eventually(IN_FORCE, || {
        curl.clone().with_token(&stolen).get(path)?.refused(401, "Unauthorized", "Unauthorized")?;
        ensure!(watch.try_wait()?.is_some(), "the watch is still open");
        Ok(())
    })?;
    // The clock of the issuer may be ahead by five minutes.
    let mut claims = provider.claims("jane@example.com")?;
    curl.clone().with_token(&provider.sign(&claims)?).get(path)?.refused(401, "Unauthorized", "Unauthorized")?;
    claims["iat"] = (now()? + 301).into();
    let code = curl.clone().with_token(&provider.sign(&claims)?).get(path)?.code;
    ensure!(code == 200, "a token from after the revocation gets {code}");
    Ok(())
}

fn now() -> anyhow::Result<u64> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs())
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("no path")
}
