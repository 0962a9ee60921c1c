//! The server that is measured, and the route to it.
//!
//! A [`Target`] has everything that a request needs: address, proxy, CA, credential and path. Because load on a machine
//! of another owner is an attack, the program connects only to loopback addresses unless a flag allows others. A proxy
//! on loopback may forward connections to other machines: it resolves the names of servers.
//!
//! Reading order: [`TargetArgs`], `address`, `kubeconfig`, `route`, `dial`.

mod address;
mod dial;
mod kubeconfig;
mod route;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use http::Uri;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

pub(crate) use address::{HostPort, Proxy};
pub(crate) use dial::{BoxIo, DialError};
use kubeconfig::Kubeconfig;
pub(crate) use route::Version;
use route::{Route, Tls};

/// The flags for the target of requests, and for the credential.
#[derive(Clone, Debug, Args)]
pub(crate) struct TargetArgs {
    /// The URL to request: https://HOST:PORT/PATH (the default port is 443), or http:// without TLS.
    #[arg(long, required_unless_present = "kubeconfig", conflicts_with = "kubeconfig")]
    url: Option<Uri>,
    /// A kubeconfig instead: server, proxy-url, CA and credential of its current context, all inline.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The path to request from the server of the kubeconfig.
    #[arg(long, value_name = "PATH", default_value = "/version")]
    path: String,
    /// The HTTP proxy for CONNECT: http://HOST:PORT or unix:PATH.
    #[arg(long, value_name = "PROXY")]
    proxy: Option<Proxy>,
    /// PEM: the CA of the server's certificate.
    #[arg(long, value_name = "FILE", conflicts_with = "kubeconfig")]
    ca: Option<PathBuf>,
    /// PEM: the client certificate.
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "kubeconfig")]
    certificate: Option<PathBuf>,
    /// PEM: the key of the client certificate.
    #[arg(long, value_name = "FILE", requires = "certificate", conflicts_with = "kubeconfig")]
    key: Option<PathBuf>,
    /// Send this header with every request. Can be given several times.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// HTTP/1.1 or HTTP/2.
    #[arg(long, default_value = "1", value_parser = ["1", "2"])]
    http: String,
    /// Allow connections to other machines. Get the permission of their owner first.
    #[arg(long)]
    allow_remote: bool,
}

/// Everything that is needed to send a request. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    route: Arc<Route>,
    prefix: String,
    path: String,
}

// === impl TargetArgs ===

impl TargetArgs {
    /// The flags of a target on this machine. The caller adds the URL or the kubeconfig.
    fn local(version: Version) -> Self {
        Self {
            url: None,
            kubeconfig: None,
            path: "/".to_owned(),
            proxy: None,
            ca: None,
            certificate: None,
            key: None,
            headers: Vec::new(),
            http: if version == Version::Http2 { "2" } else { "1" }.to_owned(),
            allow_remote: false,
        }
    }

    /// Reads the files that the flags name.
    pub(crate) fn resolve(&self) -> anyhow::Result<Target> {
        let (uri, path, given) = match (&self.url, &self.kubeconfig) {
            (Some(url), _) => {
                let path = url.path_and_query().map_or("/", |path| path.as_str());
                (url.clone(), path.to_owned(), self.files()?)
            }
            (None, Some(file)) => {
                let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
                let given = Kubeconfig::parse(&text).with_context(|| file.display().to_string())?;
                (given.server.parse().context("`server` is not a URL")?, self.path.clone(), given)
            }
            (None, None) => bail!("set --url or --kubeconfig"),
        };
        self.target(&uri, path, given)
    }

    fn files(&self) -> anyhow::Result<Kubeconfig> {
        let read = |file: &Option<PathBuf>| {
            let read = |file: &PathBuf| std::fs::read(file).with_context(|| format!("cannot read {}", file.display()));
            file.as_ref().map(read).transpose()
        };
        let (certificate, key) = (read(&self.certificate)?, read(&self.key)?);
        Ok(Kubeconfig { ca: read(&self.ca)?, identity: certificate.zip(key), ..Kubeconfig::default() })
    }

    fn target(&self, uri: &Uri, path: String, given: Kubeconfig) -> anyhow::Result<Target> {
        ensure!(path.starts_with('/'), "the path {path:?} does not begin with a slash");
        let version = if self.http == "2" { Version::Http2 } else { Version::Http1 };
        let host = uri.host().context("the URL has no host")?;
        let tls = match uri.scheme_str() {
            Some("https") => Some(Tls::new(&given, host, version)?),
            Some("http") => None,
            _ => bail!("the URL is neither https:// nor http://"),
        };
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        let proxy = self.proxy.clone().or(given.proxy);
        let mut headers = self.headers()?;
        if let Some(token) = given.token {
            let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()))?;
            bearer.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, bearer);
        }
        let prefix = if self.kubeconfig.is_some() { uri.path().trim_end_matches('/') } else { "" };
        let route = Route { server: HostPort::new(host, port), proxy, tls, allow_remote: self.allow_remote };
        Ok(Target { version, headers, route: Arc::new(route), prefix: prefix.to_owned(), path })
    }

    fn headers(&self) -> anyhow::Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("bench/", env!("CARGO_PKG_VERSION"))));
        for line in &self.headers {
            let (name, value) = line.split_once(':').with_context(|| format!("{line:?} is not NAME: VALUE"))?;
            headers.insert(name.trim().parse::<HeaderName>()?, value.trim().parse()?);
        }
        Ok(headers)
    }
}

// === impl Target ===

impl Target {
    /// A server on this machine, from a kubeconfig.
    pub(crate) fn of_kubeconfig(file: &Path, version: Version) -> anyhow::Result<Self> {
        let args = TargetArgs { kubeconfig: Some(file.to_owned()), ..TargetArgs::local(version) };
        args.resolve()
    }

    /// A server on this machine, from a URL, with HTTP/2. An `http://` URL means without TLS.
    pub(crate) fn of_url(url: &str) -> anyhow::Result<Self> {
        let url = url.parse().with_context(|| format!("{url:?} is not a URL"))?;
        TargetArgs { url: Some(url), ..TargetArgs::local(Version::Http2) }.resolve()
    }

    /// The URI of the flags.
    pub(crate) fn own_uri(&self) -> anyhow::Result<Uri> {
        self.uri(&self.path)
    }

    /// The target of a request for `path`, in the form of this HTTP version (RFC 9112, section 3.2.1; RFC 9113, section
    /// 8.3.1).
    pub(crate) fn uri(&self, path: &str) -> anyhow::Result<Uri> {
        let path = format!("{}{path}", self.prefix);
        let uri = match self.version {
            Version::Http1 => path.parse(),
            Version::Http2 => {
                let scheme = if self.route.tls.is_some() { "https" } else { "http" };
                format!("{scheme}://{}{path}", self.authority()).parse()
            }
        };
        uri.with_context(|| format!("{path:?} is not a path"))
    }

    /// The value of `Host` and `:authority`.
    pub(crate) fn authority(&self) -> String {
        self.route.server.to_string()
    }

    /// The version, cipher suite and key exchange of the first TLS handshake. `None` before it, and without TLS.
    pub(crate) fn agreed_tls(&self) -> Option<&str> {
        self.route.tls.as_ref()?.agreed.get().map(String::as_str)
    }

    /// Connects, up to the first byte of HTTP.
    pub(crate) async fn dial(&self) -> Result<BoxIo, DialError> {
        dial::dial(&self.route, self.version).await
    }
}

#[cfg(test)]
mod tests;
