//! The OpenID provider of `tests/conformance/oidc`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use atoll_tests::curl::Curl;
use atoll_tests::process::Process;
use atoll_tests::{eventually, paths};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The password of all users.
const PASSWORD: &str = "verysecure";

/// A running provider with one user. Its issuer is an address of loopback.
pub(super) struct Provider {
    pub(super) issuer: String,
    control: Curl,
    dir: TempDir,
    _process: Process,
}

// === impl Provider ===

impl Provider {
    pub(super) fn start() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("atoll-oidc-").tempdir()?;
        let file = |name: &str| dir.path().join(name).display().to_string();
        certificate(dir.path())?;
        let name = "jane@example.com";
        let user = json!({"ID": name, "Username": name, "Password": PASSWORD, "Email": name, "EmailVerified": true});
        std::fs::write(file("users.json"), json!({ name: user }).to_string())?;
        std::fs::write(file("groups.json"), json!({ name: ["developers", "beijing"] }).to_string())?;
        let (listen, control) = (paths::free_port(), paths::free_port());
        let (listen, control) = (format!("127.0.0.1:{listen}"), format!("127.0.0.1:{control}"));
        let words = [
            ("-listen", listen.clone()),
            ("-control", control.clone()),
            ("-certificate", file("tls.crt")),
            ("-key", file("tls.key")),
            ("-users", file("users.json")),
            ("-groups", file("groups.json")),
        ];
        let words: Vec<&str> = words.iter().flat_map(|(flag, value)| [*flag, value.as_str()]).collect();
        let program = paths::component("atoll-oidc");
        let process = Process::start("provider", &program, &words, dir.path().join("provider.log"))?;
        let started = Curl::directly(&listen, &dir.path().join("ca.crt"));
        eventually(Duration::from_secs(20), || {
            let code = started.get("/.well-known/openid-configuration")?.code;
            ensure!(code == 200, "{code}");
            Ok(())
        })?;
        Ok(Self { issuer: format!("https://{listen}"), control: Curl::plain(&control), dir, _process: process })
    }

    /// The value of `oidc`.
    pub(super) fn configuration(&self) -> String {
        format!(
            "{{issuer: {{url: \"{}\", audiences: [atoll], certificateAuthority: {}}}, \
             claimMappings: {{username: {{claim: email, prefix: \"oidc:\"}}, groups: {{claim: groups, prefix: \"oidc:\"}}, \
             uid: {{claim: sub}}}}}}",
            self.issuer,
            self.authority().display()
        )
    }

    pub(super) fn authority(&self) -> PathBuf {
        self.dir.path().join("ca.crt")
    }

    /// The claims of a token of this provider.
    pub(super) fn claims(&self, user: &str) -> anyhow::Result<Value> {
        let now = super::now()?;
        Ok(json!({
            "iss": self.issuer, "aud": ["atoll"], "sub": user, "email": user, "email_verified": true,
            "groups": ["developers", "beijing"], "iat": now, "exp": now + 600,
        }))
    }

    /// Has any claims signed.
    pub(super) fn sign(&self, claims: &Value) -> anyhow::Result<String> {
        let response = self.control.send("POST", "/sign", &claims.to_string())?;
        ensure!(response.code == 200, "{}", response.body);
        Ok(response.body)
    }

    /// Replaces the key.
    pub(super) fn rotate(&self) -> anyhow::Result<()> {
        let response = self.control.send("POST", "/rotate", "")?;
        ensure!(response.code == 200, "{}", response.body);
        Ok(())
    }

    /// Does on the pages of the provider what a person does there who has a code.
    pub(super) fn approve(&self, code: &str, user: &str) -> anyhow::Result<()> {
        let [code, user] = [("user_code", code), ("username", user)].map(|(name, value)| format!("{name}={value}"));
        self.page("device/login", &[&code, &user, &format!("password={PASSWORD}")])?;
        let confirmed = self.page("device/confirm", &["action=allowed"])?;
        ensure!(confirmed.contains("Device authorization allowed"), "{confirmed}");
        Ok(())
    }

    /// Does in a browser what a person does there. Returns the last page, which is that of `atoll login`.
    pub(super) fn log_in(&self, url: &str, user: &str) -> anyhow::Result<String> {
        let path = url.strip_prefix(&format!("{}/", self.issuer)).with_context(|| format!("another issuer: {url}"))?;
        let form = self.page(path, &[])?;
        let hidden = "name=\"id\" value=\"";
        let id = form.split_once(hidden).and_then(|(_, rest)| rest.split('"').next()).with_context(|| form.clone())?;
        let fields = [format!("id={id}"), format!("username={user}"), format!("password={PASSWORD}")];
        self.page("login/username", &fields.each_ref().map(String::as_str))
    }

    /// A page, after all redirects. With fields, a form is sent.
    fn page(&self, path: &str, fields: &[&str]) -> anyhow::Result<String> {
        let jar = self.dir.path().join("cookies").display().to_string();
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--location", "--cacert"]).arg(self.authority());
        command.args(["--cookie", &jar, "--cookie-jar", &jar]);
        command.args(fields.iter().flat_map(|field| ["--data-urlencode", *field]));
        let output = command.arg(format!("{}/{path}", self.issuer)).output()?;
        if !output.status.success() {
            bail!("{path}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A certificate for 127.0.0.1, and its authority.
fn certificate(dir: &Path) -> anyhow::Result<()> {
    let run = |words: &[&str]| {
        let output = Command::new("openssl").args(words).current_dir(dir).output().context("cannot run openssl")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    };
    run(&["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "ca.key"])?;
    run(&["req", "-x509", "-key", "ca.key", "-subj", "/CN=issuer", "-days", "2", "-out", "ca.crt"])?;
    run(&["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "tls.key"])?;
    run(&["req", "-new", "-key", "tls.key", "-subj", "/CN=127.0.0.1", "-out", "tls.csr"])?;
    std::fs::write(dir.join("san"), "subjectAltName=IP:127.0.0.1\n")?;
    let sign = ["x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"];
    run(&[&sign[..], &["-extfile", "san", "-out", "tls.crt"]].concat())
}
