//! The OTLP receiver of the OpenTelemetry Collector (`tests/kube/modules/otlp-receiver`), and the spans that it has received.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::Process;
use crate::{eventually, paths};

/// The time limit for a start.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A running receiver.
#[derive(Debug)]
pub struct Collector {
    process: Process,
    grpc: u16,
    http: u16,
    _dir: TempDir,
}

/// A span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The `service.name` of its process.
    pub service: String,
    /// The ID of its trace.
    pub trace: String,
    /// Its ID.
    pub id: String,
    /// The ID of its parent, or an empty text.
    pub parent: String,
    /// What it is called.
    pub name: String,
    /// Its attributes, as `key=value`.
    pub attributes: Vec<String>,
}

// === impl Collector ===

impl Collector {
    /// Starts a receiver.
    pub fn start() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("atoll-collector-").tempdir()?;
        let (grpc, http) = (paths::free_port(), paths::free_port());
        let arguments =
            ["-grpc".to_owned(), format!("127.0.0.1:{grpc}"), "-http".to_owned(), format!("127.0.0.1:{http}")];
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let log = dir.path().join("spans.json");
        let process = Process::start("otlp-receiver", &paths::component("otlp-receiver"), &arguments, log)?;
        eventually(START_TIMEOUT, || {
            std::net::TcpStream::connect(("127.0.0.1", http)).with_context(|| process.log()).map(drop)
        })?;
        Ok(Self { process, grpc, http, _dir: dir })
    }

    /// Its address for OTLP over gRPC.
    pub fn grpc(&self) -> String {
        format!("127.0.0.1:{}", self.grpc)
    }

    /// Its URL for OTLP over HTTP.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.http)
    }

    /// All spans that it has received.
    pub fn spans(&self) -> anyhow::Result<Vec<Span>> {
        let mut spans = Vec::new();
        for line in self.process.log().lines() {
            let batch: Value = serde_json::from_str(line).with_context(|| format!("not a batch: {line}"))?;
            for of_resource in list(&batch["resourceSpans"]) {
                let attributes = attributes(&of_resource["resource"]);
                let service = attributes.iter().find_map(|pair| pair.strip_prefix("service.name="));
                let service = service.context("a resource without a name")?;
                let of_scopes = list(&of_resource["scopeSpans"]).iter().flat_map(|scope| list(&scope["spans"]));
                spans.extend(of_scopes.map(|span| Span::of(service, span)));
            }
        }
        Ok(spans)
    }

    /// The spans of a trace, once there is one with this name from this service.
    pub fn trace(&self, trace: &str, (service, name): (&str, &str), within: Duration) -> anyhow::Result<Vec<Span>> {
        eventually(within, || {
            let mut spans = self.spans()?;
            spans.retain(|span| span.trace == trace);
            ensure!(spans.iter().any(|span| span.service == service && span.name == name), "no {name:?}: {spans:#?}");
            Ok(spans)
        })
    }
}

// === impl Span ===

impl Span {
    fn of(service: &str, span: &Value) -> Self {
        let text = |key: &str| span[key].as_str().unwrap_or_default().to_owned();
        let (trace, id, parent) = (text("traceId"), text("spanId"), text("parentSpanId"));
        Self { service: service.to_owned(), trace, id, parent, name: text("name"), attributes: attributes(span) }
    }

    /// Whether it has this attribute.
    pub fn has(&self, attribute: &str) -> bool {
        self.attributes.iter().any(|pair| pair == attribute)
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The attributes with simple values.
fn attributes(of: &Value) -> Vec<String> {
    let pair = |pair: &Value| {
        let value = pair["value"].as_object()?.values().next()?;
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(format!("{}={value}", pair["key"].as_str()?))
    };
    list(&of["attributes"]).iter().filter_map(pair).collect()
}
