//! How the body of a response crosses the tunnel.
//!
//! ```text
//! GET /api/v1/pods                       :status: 200
//! x-atoll-accept-encoding: blocks        x-atoll-encoding: blocks
//!                                        x-atoll-length: 4711
//! ```
//!
//! The encoding is hop-by-hop, unlike `content-encoding`: clients do not see it. The agent chooses it only if the proxy-server
//! accepts it, and the proxy-server decodes it only if the agent has announced the capability. So either half can be of an older
//! version, and a host behind an older agent cannot choose the encoding. A body is a sequence of [`blocks`](crate::blocks), or it
//! is one that the proxy-server has ([`digest`](crate::digest)).

use http::header::{CONTENT_LENGTH, HeaderMap};
use http::{HeaderName, HeaderValue};

/// The encodings that the proxy-server accepts. Only the proxy-server sets it, never a client.
pub const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("x-atoll-accept-encoding");
/// The encoding of the body. Only the agent sets it, never a host.
pub const ENCODING: HeaderName = HeaderName::from_static("x-atoll-encoding");
/// The `content-length` of the decoded body. In HTTP/2, `content-length` must be the number of bytes in the DATA frames (RFC 9113,
/// section 8.1.1).
pub const LENGTH: HeaderName = HeaderName::from_static("x-atoll-length");

/// The capability that an agent announces in its registration if it may encode bodies.
pub const CAPABILITY: &str = "blocks";

/// Other features of responses that the proxy-server supports, separated by commas. This is a separate header, because older
/// agents compare the whole value of [`ACCEPT_ENCODING`]. Only the proxy-server sets it, never a client.
pub const ACCEPT: HeaderName = HeaderName::from_static("x-atoll-accept");

const BLOCKS: HeaderValue = HeaderValue::from_static("blocks");
const PRIMED: HeaderValue = HeaderValue::from_static("primed-1");
const HELD: HeaderValue = HeaderValue::from_static("held");

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The bytes themselves.
    Identity,
    /// A sequence of blocks.
    Blocks,
    /// A sequence of blocks, the first of which has a dictionary: for watches.
    Primed,
    /// Nothing: the proxy-server has the body ([`digest`](crate::digest)).
    Held,
}

/// The agent has chosen an encoding that the proxy-server does not accept, or an invalid length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent's response has an unknown encoding or an invalid length")]
pub struct UnknownEncoding;

/// Accepts blocks in the response to a request.
pub fn accept_blocks(request: &mut HeaderMap) {
    request.insert(ACCEPT_ENCODING, BLOCKS);
    request.insert(ACCEPT, HeaderValue::from_static("primed-1,short-audit-id"));
}

/// Whether the proxy-server accepts blocks.
pub fn accepts_blocks(request: &HeaderMap) -> bool {
    request.get(ACCEPT_ENCODING) == Some(&BLOCKS)
}

/// Whether the proxy-server accepts primed blocks.
pub fn accepts_primed(request: &HeaderMap) -> bool {
    accepts(request, PRIMED.as_bytes())
}

/// Whether the proxy-server accepts short IDs ([`audit_id`](crate::audit_id)).
pub fn accepts_short_id(request: &HeaderMap) -> bool {
    accepts(request, b"short-audit-id")
}

fn accepts(request: &HeaderMap, wanted: &[u8]) -> bool {
    request.get(ACCEPT).is_some_and(|accept| accept.as_bytes().split(|byte| *byte == b',').any(|one| one == wanted))
}

// === impl Encoding ===

impl Encoding {
    /// Announces the encoding in the head of a response, and removes what the host has set.
    pub fn write(self, response: &mut HeaderMap) {
        response.remove(ENCODING);
        response.remove(LENGTH);
        let encoding = match self {
            Self::Identity => None,
            Self::Blocks => Some(BLOCKS),
            Self::Primed => Some(PRIMED),
            Self::Held => Some(HELD),
        };
        if let Some(encoding) = encoding {
            response.insert(ENCODING, encoding);
            if let Some(length) = response.remove(CONTENT_LENGTH) {
                response.insert(LENGTH, length);
            }
        }
    }

    /// The encoding that the head of a response announces. Makes the head that of the decoded response.
    pub fn take(response: &mut HeaderMap) -> Result<Self, UnknownEncoding> {
        let length = response.remove(LENGTH).map(|length| read_length(&length)).transpose()?;
        let encoding = match response.remove(ENCODING) {
            None => return Ok(Self::Identity),
            Some(encoding) if encoding == BLOCKS => Self::Blocks,
            Some(encoding) if encoding == PRIMED => Self::Primed,
            Some(encoding) if encoding == HELD => Self::Held,
            Some(_) => return Err(UnknownEncoding),
        };
        response.remove(CONTENT_LENGTH);
        if let Some(length) = length {
            response.insert(CONTENT_LENGTH, length);
        }
        Ok(encoding)
    }
}

/// The length of the decoded body. Only digits are valid, as in `content-length`, which it becomes.
fn read_length(value: &HeaderValue) -> Result<HeaderValue, UnknownEncoding> {
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let length: u64 = digits.and_then(|text| text.parse().ok()).ok_or(UnknownEncoding)?;
    Ok(length.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_head_of_a_response_survives() {
        for encoding in [Encoding::Identity, Encoding::Blocks, Encoding::Primed, Encoding::Held] {
            for original in [headers(&[(CONTENT_LENGTH, "4711")]), headers(&[])] {
                let mut head = original.clone();
                encoding.write(&mut head);
                assert!(encoding == Encoding::Identity || !head.contains_key(CONTENT_LENGTH));
                assert_eq!((Encoding::take(&mut head), head), (Ok(encoding), original));
            }
        }
    }

    #[test]
    fn a_host_cannot_choose_the_encoding() {
        let mut head = headers(&[(ENCODING, "blocks"), (LENGTH, "1"), (CONTENT_LENGTH, "2")]);
        Encoding::Identity.write(&mut head);
        assert_eq!(head, headers(&[(CONTENT_LENGTH, "2")]));
    }

    #[test]
    fn an_encoding_of_a_newer_agent_is_an_error() {
        assert_eq!(Encoding::take(&mut headers(&[(ENCODING, "lattice")])), Err(UnknownEncoding));
    }

    #[test]
    fn a_length_has_only_digits() {
        for length in ["+5", "-1", "", "5 ", "0x5", "99999999999999999999"] {
            assert_eq!(Encoding::take(&mut headers(&[(ENCODING, "blocks"), (LENGTH, length)])), Err(UnknownEncoding));
        }
    }

    #[test]
    fn older_proxy_servers_accept_nothing() {
        let mut request = headers(&[]);
        assert!(!accepts_blocks(&request) && !accepts_blocks(&headers(&[(ACCEPT_ENCODING, "lattice")])));
        accept_blocks(&mut request);
        assert!(accepts_blocks(&request) && accepts_primed(&request) && accepts_short_id(&request));
    }
}
