//! Bad requests: a virtual cluster must answer them as the API server itself does.
//!
//! Each is asked twice, of a plain namespace of the host and of a namespace of the same name in a virtual cluster. The
//! status codes must be the same, and so must the Statuses, to the last letter. There is nothing to compare with where a
//! virtual cluster refuses what a whole one would take; such refusals are quoted.

use anyhow::{Context, ensure};
use atoll_tests::{Curl, VirtualSite, Way};
use serde_json::Value;

use super::{BEIJING, namespace};

/// The namespace that both sides have.
const HERE: &str = "errors";

/// A bad request.
struct Bad {
    method: &'static str,
    path: String,
    media: &'static str,
    body: String,
    options: &'static [&'static str],
}

/// The two sides.
struct Sides {
    host: Curl,
    cluster: Curl,
}

// === impl Bad ===

impl Bad {
    fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), media: JSON, body: String::new(), options: &[] }
    }

    fn with(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }
}

const JSON: &str = "application/json";
const CONFIG_MAPS: &str = "/api/v1/namespaces/errors/configmaps";

// === impl Sides ===

impl Sides {
    fn new(site: &VirtualSite) -> anyhow::Result<Self> {
        for kubectl in [site.host().kubectl(), site.administrator(BEIJING, Way::Proxy)?] {
            // The trials of this file share it.
            if kubectl.run(&["get", "namespace", HERE])?.code != 0 {
                kubectl.run_with(&["create", "-f", "-"], &namespace(HERE))?;
            }
            kubectl.ok(&["get", "namespace", HERE])?;
        }
        let pki = site.host().dir().join("pki");
        let address = site.host().api_servers()?.into_iter().next().context("an API server")?;
        let host = Curl::directly(&address, &pki.join("ca.crt"));
        let host = host.with_certificate(&pki.join("admin.crt"), &pki.join("admin.key"));
        Ok(Self { host, cluster: site.curl(BEIJING, Way::Path)? })
    }

    /// All of them must be answered alike; those that are not are told together.
    fn agree(&self, all: &[Bad]) -> anyhow::Result<()> {
        let mut differences = Vec::new();
        for bad in all {
            let ask = |side: &Curl| {
                let side = side.clone().with(bad.options);
                side.send_as(bad.method, &bad.path, bad.media, &bad.body)
            };
            let (host, cluster) = (ask(&self.host)?, ask(&self.cluster)?);
            let alike = host.code == cluster.code && (host.code < 400 || said(&host.body) == said(&cluster.body));
            if !alike {
                let Bad { method, path, media, body, .. } = bad;
                differences.push(format!(
                    "{method} {path} {media} {body:.300}\n- {} {}\n+ {} {}",
                    host.code, host.body, cluster.code, cluster.body
                ));
            }
        }
        ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
        Ok(())
    }
}

/// A Status as JSON; anything else as it is.
fn said(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| Value::from(body))
}

pub(super) fn heads_have_no_body(site: &VirtualSite) -> anyhow::Result<()> {
    let sides = Sides::new(site)?;
    let paths = [
        "/api/v1/namespaces/errors/configmaps/kube-root-ca.crt",
        "/api/v1/namespaces/errors/configmaps/none",
        CONFIG_MAPS,
        "/api/v1/namespaces/errors",
        "/api/v1/nodes/beijing-1",
        "/api/v1/pods",
    ];
    for options in [&["--head", "--output", "/dev/null", "--http1.1"], &["--head", "--output", "/dev/null", "--http2"]]
    {
        let all: Vec<Bad> = paths.iter().map(|path| Bad::new("HEAD", *path).with(options)).collect();
        sides.agree(&all)?;
    }
    Ok(())
}
