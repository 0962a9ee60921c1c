//! The addresses from which a request comes (`SourceIPs` in apimachinery's `pkg/util/net/http.go`).

use std::net::IpAddr;

use http::HeaderMap;

/// The maximum number of addresses that are recorded. A client can name any.
const MAX: usize = 32;

/// The addresses that the headers name, and then that of the connection. Only the last one is certain.
pub(crate) fn source_ips(headers: &HeaderMap, remote: Option<IpAddr>) -> Vec<IpAddr> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let parse = |part: &str| part.trim().parse::<IpAddr>().ok().map(|address| address.to_canonical());
    let mut addresses: Vec<_> = text("x-forwarded-for").split(',').filter_map(parse).take(MAX).collect();
    if let Some(real) = parse(text("x-real-ip")).filter(|real| !addresses.contains(real)) {
        addresses.push(real);
    }
    if let Some(remote) = remote.map(|remote| remote.to_canonical()).filter(|remote| addresses.last() != Some(remote)) {
        addresses.push(remote);
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_is_the_last_address() {
        let addresses = |pairs: &[(&'static str, &'static str)]| {
            let headers = pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            let found = source_ips(&headers, Some("192.0.2.1".parse().unwrap()));
            found.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(addresses(&[]), "192.0.2.1");
        assert_eq!(addresses(&[("x-forwarded-for", "10.0.0.1, x,::ffff:10.0.0.2")]), "10.0.0.1 10.0.0.2 192.0.2.1");
        assert_eq!(addresses(&[("x-forwarded-for", "10.0.0.1,192.0.2.1")]), "10.0.0.1 192.0.2.1");
        let both = [("x-forwarded-for", "10.0.0.1"), ("x-real-ip", "10.0.0.1")];
        assert_eq!(addresses(&both), "10.0.0.1 192.0.2.1");
        assert_eq!(addresses(&[("x-real-ip", "10.0.0.3")]), "10.0.0.3 192.0.2.1");
        let many = "10.0.0.1,".repeat(100);
        let headers = [("x-forwarded-for".parse().unwrap(), many.parse().unwrap())].into_iter().collect();
        assert_eq!(source_ips(&headers, None).len(), MAX);
    }
}
