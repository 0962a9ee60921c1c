//! The addresses of the proxy-server for clients, from its configuration.

use anyhow::{Context as _, bail, ensure};
use ops::config::{Located, load};
use ops::listen::ListenAddr;
use proxy_server::ProxyServerConfiguration;
use proxy_server::config::Cluster;
use proxy_server::grants;

use super::args::Args;

const LOOPBACK: &str = "127.0.0.1";

/// Reads the configuration, if there is a flag for it, with the clusters that agents have added.
pub(super) fn server_config(args: &Args) -> anyhow::Result<Option<ProxyServerConfiguration>> {
    let Some(path) = &args.server_config else { return Ok(None) };
    let config: ProxyServerConfiguration = load(path)?;
    Ok(Some(grants::with_added(&config).context("grants.directory")?))
}

/// The cluster's entry.
pub(super) fn cluster<'a>(args: &Args, config: &'a ProxyServerConfiguration) -> anyhow::Result<&'a Located<Cluster>> {
    config.clusters.iter().find(|cluster| cluster.name == args.cluster).with_context(|| {
        let names: Vec<_> = config.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        format!("the proxy-server's configuration has no cluster {}; it has: {}", args.cluster, names.join(", "))
    })
}

/// The `proxy-url`.
pub(super) fn proxy_url(args: &Args, config: Option<&ProxyServerConfiguration>) -> anyhow::Result<String> {
    if let Some(url) = &args.proxy_url {
        // client-go also supports socks5, but the proxy-server does not.
        return url_of(url, &["http", "https"]).context("--proxy-url");
    }
    let config = config.context("set --proxy-url or --server-config: the address of the proxy is unknown")?;
    let scheme = if config.proxy.tls { "https" } else { "http" };
    let address = published(&config.listeners.proxy, config).context("listeners.proxy; set --proxy-url")?;
    Ok(format!("{scheme}://{address}"))
}

/// The `server` of a virtual cluster.
pub(super) fn server(args: &Args, config: &ProxyServerConfiguration) -> anyhow::Result<String> {
    let cluster = &args.cluster;
    if let Some(url) = &args.server {
        return url_of(url, &["https"]).context("--server");
    }
    if !args.direct {
        return Ok(protocol::user_certificate::endpoint(cluster, &config.domain));
    }
    let address = published(&config.listeners.endpoint, config).context("listeners.endpoint; set --server")?;
    Ok(format!("https://{address}/clusters/{cluster}"))
}

/// The URL of the cluster at the endpoint listener, from this machine.
pub(super) fn endpoint(args: &Args, config: &ProxyServerConfiguration) -> anyhow::Result<String> {
    let address = reachable(&config.listeners.endpoint, LOOPBACK).context("listeners.endpoint; set --server")?;
    Ok(format!("https://{address}/clusters/{}", args.cluster))
}

/// The address of a listener for clients on other machines. The first of `hostNames` replaces "all interfaces".
fn published(listener: &ListenAddr, config: &ProxyServerConfiguration) -> anyhow::Result<String> {
    match config.host_names.first() {
        Some(name) if name.contains(':') => reachable(listener, &format!("[{}]", **name)),
        Some(name) => reachable(listener, name),
        None => reachable(listener, LOOPBACK),
    }
}

/// The address of a listener. `host` replaces "all interfaces".
fn reachable(listener: &ListenAddr, host: &str) -> anyhow::Result<String> {
    ensure!(listener.port() != 0, "port 0 is not a fixed port");
    let address = listener.to_string();
    let (own, port) = address.rsplit_once(':').context("no port")?;
    Ok(match own {
        "0.0.0.0" | "[::]" => format!("{host}:{port}"),
        _ => address,
    })
}

/// Checks that a URL has one of these schemes, a host, and no characters that a YAML file would have to escape.
fn url_of(text: &str, schemes: &[&str]) -> anyhow::Result<String> {
    let error = || format!("{text:?} is not a URL such as {}://proxy.example.com:8443", schemes[0]);
    let (scheme, rest) = text.split_once("://").with_context(error)?;
    if !schemes.contains(&scheme) {
        bail!("the scheme must be {}", schemes.join(" or "));
    }
    let visible = rest.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(visible && !rest.is_empty() && !rest.starts_with(['/', ':']), error());
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_reached_where_it_listens() {
        for (listener, address) in [
            ("127.0.0.1:8090", "127.0.0.1:8090"),
            ("0.0.0.0:8443", "127.0.0.1:8443"),
            ("[::]:8443", "127.0.0.1:8443"),
            ("[::1]:8443", "[::1]:8443"),
            ("10.0.0.5:8443", "10.0.0.5:8443"),
        ] {
            assert_eq!(reachable(&listener.parse().unwrap(), LOOPBACK).unwrap(), address);
        }
        assert_eq!(reachable(&"[::]:1".parse().unwrap(), "a.example").unwrap(), "a.example:1");
        assert!(reachable(&"127.0.0.1:0".parse().unwrap(), LOOPBACK).is_err());
    }

    #[test]
    fn urls_have_a_scheme_that_fits_and_a_host() {
        for good in ["https://a.b:443", "https://[::1]/clusters/x"] {
            assert_eq!(url_of(good, &["https"]).unwrap(), good);
        }
        for bad in ["a.b:443", "http://a", "https://", "https:///x", "https://a b", "https://:1", "https://a\n"] {
            assert!(url_of(bad, &["https"]).is_err(), "{bad:?}");
        }
    }
}
