//! curl(1), for requests that kubectl does not send.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::route::{DOMAIN, Route};
use crate::site::Ports;

/// curl with an endpoint and credentials.
#[derive(Clone, Debug)]
pub struct Curl {
    base: String,
    options: Vec<String>,
    credentials: Vec<String>,
}

/// A response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub code: u16,
    /// The body.
    pub body: String,
    /// The header `Warning`, or an empty text.
    pub warning: String,
}

// === impl Curl ===

impl Curl {
    /// curl for the endpoint of `cluster`, without credentials. `authority` must have signed the endpoint's
    /// certificate.
    pub fn new(route: Route, cluster: &str, ports: Ports, authority: &Path) -> Self {
        let host = format!("{cluster}.{DOMAIN}");
        let mut options = vec!["--cacert".to_owned(), authority.display().to_string()];
        let base = match route {
            Route::Proxy => {
                options.extend(["--proxytunnel".into(), "--proxy".into(), format!("http://127.0.0.1:{}", ports.proxy)]);
                format!("https://{host}")
            }
            Route::Path => format!("https://127.0.0.1:{}/clusters/{cluster}", ports.endpoint),
            Route::Sni => {
                options.extend(["--resolve".into(), format!("{host}:{}:127.0.0.1", ports.endpoint)]);
                format!("https://{host}:{}", ports.endpoint)
            }
        };
        Self { base, options, credentials: Vec::new() }
    }

    /// curl for an API server, without a proxy and without credentials.
    pub fn directly(address: &str, authority: &Path) -> Self {
        let options = vec!["--cacert".to_owned(), authority.display().to_string()];
        Self { base: format!("https://{address}"), options, credentials: Vec::new() }
    }

    /// curl for a server without TLS.
    pub fn plain(address: &str) -> Self {
        Self { base: format!("http://{address}"), options: Vec::new(), credentials: Vec::new() }
    }

    /// The same server, with another path prefix.
    #[must_use]
    pub fn elsewhere(&self, path: &str) -> Self {
        let start = self.base.find("://").map_or(0, |at| at + 3);
        let end = self.base[start..].find('/').map_or(self.base.len(), |at| start + at);
        Self { base: format!("{}{path}", &self.base[..end]), ..self.clone() }
    }

    /// With more options.
    #[must_use]
    pub fn with(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|&option| option.to_owned()));
        self
    }

    /// With this client certificate, and no other credential.
    #[must_use]
    pub fn with_certificate(mut self, certificate: &Path, key: &Path) -> Self {
        let file = |path: &Path| path.display().to_string();
        self.credentials = vec!["--cert".into(), file(certificate), "--key".into(), file(key)];
        self
    }

    /// With this token, and no other credential.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.credentials = vec!["--oauth2-bearer".into(), token.to_owned()];
        self
    }

    /// Without credentials.
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.credentials = Vec::new();
        self
    }

    /// With the same credentials, for another endpoint and its route.
    #[must_use]
    pub fn at(&self, other: &Self) -> Self {
        Self { credentials: self.credentials.clone(), ..other.clone() }
    }

    /// Sends GET. The path is sent unchanged, with dots and slashes.
    pub fn get(&self, path: &str) -> anyhow::Result<Response> {
        self.send("GET", path, "")
    }

    /// Sends any method, with a body in JSON.
    pub fn send(&self, method: &str, path: &str, body: &str) -> anyhow::Result<Response> {
        self.send_as(method, path, "application/json", body)
    }

    /// Sends any method with HTTP/1.1, and only two bytes of a longer body.
    pub fn send_head(&self, method: &str, path: &str) -> anyhow::Result<Response> {
        let head = ["--http1.1", "--header", "Expect:", "--header", "Content-Length: 100000"];
        self.clone().with(&head).send(method, path, "{ ")
    }

    /// Sends any method, with a body of any media type.
    pub fn send_as(&self, method: &str, path: &str, media_type: &str, body: &str) -> anyhow::Result<Response> {
        self.send_bytes(method, path, media_type, body.as_bytes())
    }

    /// Like [`Curl::send_as`], with a body that does not have to be text.
    pub fn send_bytes(&self, method: &str, path: &str, media_type: &str, body: &[u8]) -> anyhow::Result<Response> {
        let mut command = Command::new("curl");
        command
            .args(["--silent", "--show-error", "--globoff", "--path-as-is", "--max-time", "30"])
            .args(["--write-out", "\n%header{warning}\n%{http_code}", "--request", method])
            .args(sent_at_once(body).then_some("--http1.1"))
            .args(&self.options)
            .args(&self.credentials);
        if !body.is_empty() {
            command.args(["--header", &format!("Content-Type: {media_type}"), "--data-binary", "@-"]);
        }
        command.arg(format!("{}{path}", self.base)).env_remove("HTTPS_PROXY").env_remove("https_proxy");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start curl")?;
        let mut stdin = child.stdin.take().context("no stdin")?;
        let body = body.to_owned();
        // The server may respond before it has read the body.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&body)));
        let output = child.wait_with_output()?;
        let _ = writer.join();
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "curl {method} {path}: {error}");
        let text = String::from_utf8_lossy(&output.stdout);
        let (text, code) = text.rsplit_once('\n').context("no status code")?;
        let (body, warning) = text.rsplit_once('\n').context("no line for warnings")?;
        Ok(Response { code: code.parse()?, body: body.to_owned(), warning: warning.to_owned() })
    }
}

/// Whether curl sends this body with HTTP/1.1, unless the options say another version. With HTTP/2, curl 7.88 can fail
/// (exit codes 18 and 92) when the server responds before it has read the body and then resets the stream, which RFC 9113
/// section 8.1 permits: of 600 such responses of kube-apiserver, curl could not read 260. With HTTP/1.1, curl reads no
/// response before it has sent the body, so a long body takes HTTP/2.
fn sent_at_once(body: &[u8]) -> bool {
    !body.is_empty() && body.len() <= 16 << 10
}

// === impl Response ===

impl Response {
    /// The body as JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("{}: not JSON: {}", self.code, self.body))
    }

    /// Fails unless the response is a `metav1.Status` with this code and reason, and a message that contains `why`.
    pub fn refused(&self, code: u16, reason: &str, why: &str) -> anyhow::Result<Value> {
        ensure!(self.code == code, "{} instead of {code}: {}", self.code, self.body);
        let status = self.json()?;
        ensure!(status["kind"] == "Status" && status["status"] == "Failure", "not a Status: {status}");
        ensure!(status["code"] == code && status["reason"] == reason, "{status} is not {code} {reason}");
        let message = status["message"].as_str().unwrap_or_default();
        ensure!(message.contains(why), "{message:?} does not contain {why:?}");
        Ok(status)
    }
}
