//! The HTTP/1.1 exchange at the beginning of a tunnel (RFC 9110, section 7.8).
//!
//! ```text
//! POST /atoll/tunnel HTTP/1.1            HTTP/1.1 101 Switching Protocols
//! Connection: upgrade                    Connection: upgrade
//! Upgrade: atoll-tunnel                  Upgrade: atoll-tunnel
//! Content-Type: application/json         X-Atoll-Acceptance: {"protocol":"1.1", ...}
//!
//! {"protocol":"1.1","agent":"site-a", ...}
//! ```

use http::HeaderName;

/// The path at which agents register.
pub const PATH: &str = "/atoll/tunnel";
/// The `Upgrade` token.
pub const PROTOCOL: &str = "atoll-tunnel";
/// The header with the [`crate::Acceptance`] of a `101`.
pub const ACCEPTANCE: HeaderName = HeaderName::from_static("x-atoll-acceptance");
/// The ALPN protocol of the agents' listener: the tunnel begins with an HTTP/1.1 request.
pub const ALPN: &[u8] = b"http/1.1";
