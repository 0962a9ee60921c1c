//! What one stream of a tunnel asks for.
//!
//! | HTTP/2 request | [`StreamKind`] | what the agent does |
//! |---|---|---|
//! | any method but CONNECT, [`CLUSTER`] header | [`StreamKind::Api`] | rewrites and asks the host API server |
//! | extended CONNECT (RFC 8441), `:protocol` is the upgrade token | [`StreamKind::Upgrade`] | the same with a 101 |
//! | CONNECT with [`CLUSTER`] | [`StreamKind::Physical`] | dials that cluster's API server |
//! | CONNECT without it | [`StreamKind::Destination`] | dials, if its own `destinations` allow it |
//! | any method but CONNECT, [`OFFERS`] header | [`StreamKind::Offers`] | says what it serves, now and after each change ([`crate::offers`]) |

use http::header::HeaderMap;
use http::{HeaderName, Method};

use crate::ClusterName;
use crate::name::InvalidName;

/// Names the cluster that a stream is for. Set by the proxy-server, never by a client.
pub const CLUSTER: HeaderName = HeaderName::from_static("x-atoll-cluster");
/// The method of the client's request when the stream's own must be CONNECT (RFC 8441 leaves no other place).
pub const METHOD: HeaderName = HeaderName::from_static("x-atoll-method");
/// Asks for the agent's offers; the value says nothing.
pub const OFFERS: HeaderName = HeaderName::from_static("x-atoll-offers");
/// A short machine word on a non-200 answer to CONNECT, or on a refusal of the agent's own: whose fault it is.
pub const FAULT: HeaderName = HeaderName::from_static("x-atoll-fault");
/// All headers of ours begin so; the proxy-server strips them from clients.
pub const PREFIX: &str = "x-atoll-";

/// What a stream asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// An ordinary API request to a virtual cluster.
    Api(ClusterName),
    /// An API request that switches protocols: exec, attach, port-forward.
    Upgrade(ClusterName),
    /// Bytes to the API server of a physical cluster.
    Physical(ClusterName),
    /// Bytes to the authority of the request.
    Destination,
    /// The agent's offers, and our answers to them.
    Offers,
}

/// A stream that this contract does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownStream {
    /// An API request without a cluster.
    #[error("an API request on the tunnel names no cluster")]
    NoCluster,
    /// The cluster is not a name.
    #[error("the stream's cluster is not a name")]
    Cluster(#[source] InvalidName),
}

// === impl StreamKind ===

impl StreamKind {
    /// Reads the kind off a request's head. `extended` is whether it has a `:protocol`.
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
            (true, false, Some(cluster)) => Ok(Self::Physical(cluster)),
            (true, false, None) => Ok(Self::Destination),
            (false, _, Some(cluster)) => Ok(Self::Api(cluster)),
            (false, _, None) if headers.contains_key(OFFERS) => Ok(Self::Offers),
            (true, true, None) | (false, _, None) => Err(UnknownStream::NoCluster),
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
    fn the_table_of_the_module() {
        let beijing: ClusterName = "ke-beijing".parse().unwrap();
        let name = Some("ke-beijing");
        assert_eq!(kind(&Method::GET, false, name), Ok(StreamKind::Api(beijing.clone())));
        assert_eq!(kind(&Method::CONNECT, true, name), Ok(StreamKind::Upgrade(beijing.clone())));
        assert_eq!(kind(&Method::CONNECT, false, name), Ok(StreamKind::Physical(beijing)));
        assert_eq!(kind(&Method::CONNECT, false, None), Ok(StreamKind::Destination));
        assert_eq!(kind(&Method::GET, false, None), Err(UnknownStream::NoCluster));
        assert_eq!(kind(&Method::CONNECT, true, None), Err(UnknownStream::NoCluster));
        assert!(matches!(kind(&Method::GET, false, Some("../x")), Err(UnknownStream::Cluster(_))));
        let offers = HeaderMap::from_iter([(OFFERS, http::HeaderValue::from_static("1"))]);
        assert_eq!(StreamKind::of(&Method::GET, false, &offers), Ok(StreamKind::Offers));
    }
}
