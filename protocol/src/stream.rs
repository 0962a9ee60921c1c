//! The kinds of streams of a tunnel.
//!
//! | HTTP/2 request | [`StreamKind`] | what the agent does |
//! |---|---|---|
//! | any method but CONNECT, [`CLUSTER`] header | [`StreamKind::Api`] | rewrites it and sends it to the host's API server |
//! | extended CONNECT (RFC 8441), `:protocol` is the upgrade token | [`StreamKind::Upgrade`] | the same with a 101 |
//! | CONNECT with [`CLUSTER`] | [`StreamKind::Physical`] | dials that cluster's API server |
//! | CONNECT with [`CLUSTER`] and [`DESTINATION`] | [`StreamKind::Destination`] | dials, if its own `destinations` allow it |
//! | any method but CONNECT, [`OFFERS`] header | [`StreamKind::Offers`] | sends its offers ([`crate::offers`]) |

use http::header::HeaderMap;
use http::{HeaderName, HeaderValue, Method, StatusCode};

use crate::name::InvalidName;
use crate::{Authority, ClusterName};

/// The cluster of a stream. Only the proxy-server sets it, never a client.
pub const CLUSTER: HeaderName = HeaderName::from_static("x-atoll-cluster");
/// The address of a layer-4 stream, `host:port`, at the site of the cluster. Only the proxy-server sets it.
pub const DESTINATION: HeaderName = HeaderName::from_static("x-atoll-destination");
/// The capability that an agent announces if it reads [`DESTINATION`]. Other agents would connect such a stream to an API
/// server.
pub const DESTINATION_CAPABILITY: &str = "destination";
/// The method of the client's request if that of the stream must be CONNECT (RFC 8441 has no other place for it).
pub const METHOD: HeaderName = HeaderName::from_static("x-atoll-method");
/// Requests the agent's offers. The value has no meaning.
pub const OFFERS: HeaderName = HeaderName::from_static("x-atoll-offers");
/// Whose fault it is that the agent refuses a request, or does not connect a CONNECT stream ([`Fault`](crate::Fault)).
pub const FAULT: HeaderName = HeaderName::from_static("x-atoll-fault");
/// Why the agent does not connect a CONNECT stream ([`NotConnected`](crate::NotConnected)).
pub const REASON: HeaderName = HeaderName::from_static("x-atoll-reason");
/// The real status of the response to an upgrade, if it is a success and the protocol is not switched: see
/// [`write_unswitched`].
pub const STATUS: HeaderName = HeaderName::from_static("x-atoll-status");
/// The client's `authorization`, if the agent has announced [`AUTHORIZATION_CAPABILITY`]. `h2` never indexes a header
/// that is called `authorization`, so it would send a token of about a thousand bytes with each request. With this
/// name, HPACK indexes it, as long as few tokens share the table of 4 KiB; on a slow network, each tunnel has a larger table
/// ([`crate::field_table`]). An attacker who observes lengths can only test whole values (RFC 7541, section 7.1.1), and
/// tokens have too much entropy for that.
///
/// RFC 7541 (sections 6.2.3 and 7.1.3) forbids an intermediary to index a value that arrived as a never-indexed
/// literal. curl and other clients that use nghttp2 send `authorization` in this form. Atoll deviates from this rule,
/// because `h2` does not report the form. For the reason above, the deviation does not disclose tokens.
pub const AUTHORIZATION: HeaderName = HeaderName::from_static("x-atoll-authorization");
/// The capability that an agent announces if it reads [`AUTHORIZATION`].
pub const AUTHORIZATION_CAPABILITY: &str = "authorization";
/// Between proxy-servers: the client of the request is not proven, so the stream counts against the share of unproven
/// clients. The value has no meaning.
pub const UNPROVEN: HeaderName = HeaderName::from_static("x-atoll-unproven");
/// The prefix of all headers of this contract. The proxy-server strips such headers from requests of clients.
pub const PREFIX: &str = "x-atoll-";

/// Moves the client's `authorization` to a header that HPACK indexes.
pub fn index_authorization(headers: &mut HeaderMap) {
    move_value(headers, http::header::AUTHORIZATION, AUTHORIZATION);
}

/// The inverse of [`index_authorization`].
pub fn restore_authorization(headers: &mut HeaderMap) {
    move_value(headers, AUTHORIZATION, http::header::AUTHORIZATION);
}

/// Tells another proxy-server that the client of a request is not proven.
pub fn mark_unproven(headers: &mut HeaderMap) {
    headers.insert(UNPROVEN, HeaderValue::from_static("1"));
}

/// Whether another proxy-server says that the client of a request is not proven. Agents do not get the header.
pub fn take_unproven(headers: &mut HeaderMap) -> bool {
    headers.remove(UNPROVEN).is_some()
}

/// Only a single value: several are invalid, and stay as they are.
fn move_value(headers: &mut HeaderMap, from: HeaderName, to: HeaderName) {
    let mut values = headers.get_all(&from).iter();
    if values.next().is_some() && values.next().is_none() {
        let value = headers.remove(from).expect("it was found");
        headers.insert(to, value);
    }
}

/// The kind of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// An ordinary API request to a virtual cluster.
    Api(ClusterName),
    /// An API request that switches protocols: exec, attach, port-forward.
    Upgrade(ClusterName),
    /// Bytes to the API server of a physical cluster.
    Physical(ClusterName),
    /// Bytes to an address at the site of a cluster.
    Destination(ClusterName, Authority),
    /// The agent's offers, and the proxy-server's verdicts.
    Offers,
}

/// A stream that this contract does not define.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownStream {
    /// A request without a cluster.
    #[error("a request on the tunnel names no cluster")]
    NoCluster,
    /// The cluster is not a name.
    #[error("the cluster name of the stream is invalid")]
    Cluster(#[source] InvalidName),
    /// The destination is not an address.
    #[error("the destination of the stream is not host:port")]
    Destination,
}

/// Names the cluster of a stream.
pub fn write_cluster(cluster: &ClusterName, headers: &mut HeaderMap) {
    let name = HeaderValue::from_str(cluster.as_str()).expect("a DNS label is a header value");
    headers.insert(CLUSTER, name);
}

/// Names the destination of a layer-4 stream.
pub fn write_destination(destination: &Authority, headers: &mut HeaderMap) {
    let value = HeaderValue::from_str(&destination.to_string()).expect("an authority is a header value");
    headers.insert(DESTINATION, value);
}

/// Makes the status of a response to an upgrade that does not switch the protocol. A success would mean that it does (RFC
/// 8441 section 5), so the stream has another status, and a header has the real one. Only the agent may set this header.
pub fn write_unswitched(status: &mut StatusCode, headers: &mut HeaderMap) {
    headers.remove(STATUS);
    if status.is_success() {
        headers.insert(STATUS, HeaderValue::from(status.as_u16()));
        *status = StatusCode::BAD_REQUEST;
    }
}

/// The real status of a response to an upgrade that did not switch the protocol.
pub fn unswitched(status: StatusCode, headers: &HeaderMap) -> StatusCode {
    let written = headers.get(STATUS).and_then(|value| StatusCode::from_bytes(value.as_bytes()).ok());
    written.filter(|written| written.is_success() && status == StatusCode::BAD_REQUEST).unwrap_or(status)
}

// === impl StreamKind ===

impl StreamKind {
    /// Determines the kind from the head of a request. `extended` is whether it has a `:protocol`.
    pub fn of(method: &Method, extended: bool, headers: &HeaderMap) -> Result<Self, UnknownStream> {
        let cluster = match headers.get(CLUSTER) {
            Some(value) => {
                let text = String::from_utf8_lossy(value.as_bytes());
                Some(text.parse::<ClusterName>().map_err(UnknownStream::Cluster)?)
            }
            None => None,
        };
        match (method == Method::CONNECT, extended, cluster) {
            (true, true, Some(cluster)) => Ok(Self::Upgrade(cluster)),
            (true, false, Some(cluster)) => match headers.get(DESTINATION) {
                Some(value) => {
                    let destination = value.to_str().ok().and_then(|text| text.parse().ok());
                    Ok(Self::Destination(cluster, destination.ok_or(UnknownStream::Destination)?))
                }
                None => Ok(Self::Physical(cluster)),
            },
            (false, _, Some(cluster)) => Ok(Self::Api(cluster)),
            (false, _, None) if headers.contains_key(OFFERS) => Ok(Self::Offers),
            (true | false, _, None) => Err(UnknownStream::NoCluster),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(method: &Method, extended: bool, cluster: Option<&str>) -> Result<StreamKind, UnknownStream> {
        let mut headers = HeaderMap::new();
        if let Some(cluster) = cluster {
            headers.insert(CLUSTER, cluster.parse().unwrap());
        }
        StreamKind::of(method, extended, &headers)
    }

    #[test]
    fn the_status_of_an_upgrade_that_does_not_switch_survives() {
        for (code, sent) in [(200, 400), (204, 400), (400, 400), (403, 403)] {
            let (mut status, real) = (StatusCode::from_u16(code).unwrap(), StatusCode::from_u16(code).unwrap());
            let mut headers = HeaderMap::from_iter([(STATUS, HeaderValue::from_static("299"))]);
            write_unswitched(&mut status, &mut headers);
            assert_eq!((status.as_u16(), unswitched(status, &headers)), (sent, real));
        }
        // No other status is accepted, and not with a status that the agent does not combine with it.
        for (status, written) in [(400, "101"), (400, "302"), (400, "2000"), (400, "x"), (403, "200")] {
            let headers = HeaderMap::from_iter([(STATUS, HeaderValue::from_static(written))]);
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(unswitched(status, &headers), status, "{written}");
        }
    }

    #[test]
    fn the_table_of_the_module() {
        let beijing: ClusterName = "ke-beijing".parse().unwrap();
        let name = Some("ke-beijing");
        assert_eq!(kind(&Method::GET, false, name), Ok(StreamKind::Api(beijing.clone())));
        assert_eq!(kind(&Method::CONNECT, true, name), Ok(StreamKind::Upgrade(beijing.clone())));
        assert_eq!(kind(&Method::CONNECT, false, name), Ok(StreamKind::Physical(beijing.clone())));
        assert_eq!(kind(&Method::CONNECT, false, None), Err(UnknownStream::NoCluster));
        let mut headers = HeaderMap::new();
        write_cluster(&beijing, &mut headers);
        let database: Authority = "10.2.0.7:5432".parse().unwrap();
        write_destination(&database, &mut headers);
        assert_eq!(StreamKind::of(&Method::CONNECT, false, &headers), Ok(StreamKind::Destination(beijing, database)));
        headers.insert(DESTINATION, HeaderValue::from_static("10.2.0.7"));
        assert_eq!(StreamKind::of(&Method::CONNECT, false, &headers), Err(UnknownStream::Destination));
        assert_eq!(kind(&Method::GET, false, None), Err(UnknownStream::NoCluster));
        assert_eq!(kind(&Method::CONNECT, true, None), Err(UnknownStream::NoCluster));
        assert!(matches!(kind(&Method::GET, false, Some("../x")), Err(UnknownStream::Cluster(_))));
        let offers = HeaderMap::from_iter([(OFFERS, HeaderValue::from_static("1"))]);
        assert_eq!(StreamKind::of(&Method::GET, false, &offers), Ok(StreamKind::Offers));
    }
}
