//! `tracing:`, the section of both configurations.

use http::Uri;
use http::uri::Scheme;
use ops::config::{FilePath, Located, Problems};
use serde::Deserialize;

/// Where spans go, and which requests are traced. The first two keys are named as in kube-apiserver's TracingConfiguration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tracing {
    /// The URL of a collector for OTLP over HTTP.
    pub endpoint: Located<String>,
    /// How many of a million requests begin a trace, if no trusted caller decides.
    #[serde(default = "never")]
    pub sampling_rate_per_million: Located<u32>,
    /// In PEM. The CA of the collector, if the URL begins with `https`.
    #[serde(default, rename = "serverCA")]
    pub server_ca: Option<Located<FilePath>>,
}

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) is_tls: bool,
    /// Without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `host` and `port` as in the URL.
    pub(crate) authority: String,
    /// The path for traces.
    pub(crate) path: String,
}

/// The text is not the URL of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the endpoint must be http://HOST:PORT or https://HOST:PORT, with or without a path, and without a user or a query"
)]
pub struct InvalidEndpoint;

/// The port of OTLP over HTTP.
const DEFAULT_PORT: u16 = 4318;

const MILLION: u32 = 1_000_000;

fn never() -> Located<u32> {
    0.into()
}

/// Reports what the types cannot express.
pub fn check(tracing: &Tracing, problems: &mut Problems) {
    let endpoint = problems.take(&tracing.endpoint, Endpoint::parse(&tracing.endpoint));
    if *tracing.sampling_rate_per_million > MILLION {
        problems.at(&tracing.sampling_rate_per_million, "samplingRatePerMillion must be at most 1000000");
    }
    match (endpoint.map(|endpoint| endpoint.is_tls), &tracing.server_ca) {
        (Some(true), None) => {
            problems
                .at(&tracing.endpoint, "set tracing.serverCA: without it, no certificate of the collector is accepted");
        }
        (Some(false), Some(file)) => {
            problems.at(file, "tracing.serverCA has no use, because the endpoint is not https");
        }
        _ => {}
    }
}

// === impl Endpoint ===

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidEndpoint> {
        let uri: Uri = text.parse().map_err(|_| InvalidEndpoint)?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(InvalidEndpoint),
        };
        let authority = uri.authority().ok_or(InvalidEndpoint)?;
        if authority.as_str().contains('@') || uri.query().is_some() || authority.host().is_empty() {
            return Err(InvalidEndpoint);
        }
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let base = uri.path().trim_end_matches('/');
        Ok(Self {
            is_tls,
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(DEFAULT_PORT),
            authority: authority.as_str().to_owned(),
            path: format!("{base}/v1/traces"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url() {
        let parsed = |text: &str| {
            Endpoint::parse(text).map(|Endpoint { is_tls, host, port, path, .. }| (is_tls, host, port, path))
        };
        let of = |tls, host: &str, port, path: &str| Ok((tls, host.to_owned(), port, path.to_owned()));
        assert_eq!(parsed("http://127.0.0.1:4318"), of(false, "127.0.0.1", 4318, "/v1/traces"));
        assert_eq!(parsed("https://collector.example.com/"), of(true, "collector.example.com", 4318, "/v1/traces"));
        assert_eq!(parsed("https://[::1]:4400/otlp/"), of(true, "::1", 4400, "/otlp/v1/traces"));
        for bad in ["localhost:4317", "grpc://a:4317", "http://u:p@a", "http://a/?x=1", "/v1/traces", "", "https://"] {
            assert_eq!(parsed(bad), Err(InvalidEndpoint), "{bad}");
        }
    }
}
