//! DNS labels.

use bytes::Bytes;

/// The longest DNS label (RFC 1123), in bytes; Kubernetes enforces it for namespaces.
pub const MAX_LABEL: usize = 63;

/// The text is not a DNS label (RFC 1123): lower-case letters, digits and `-`, at most 63, `-` not at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a DNS label: lower-case letters, digits and '-', at most 63, '-' not at an end")]
pub struct NotALabel;

/// A checked DNS label, kept as [`Bytes`] so that an edit can hand it to the output without a copy.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Label(pub(super) Bytes);

// === impl Label ===

impl Label {
    pub(super) fn new(bytes: &[u8]) -> Result<Self, NotALabel> {
        if is_label(bytes) { Ok(Self(Bytes::copy_from_slice(bytes))) } else { Err(NotALabel) }
    }
}

/// Whether the bytes are a DNS label (RFC 1123), which Kubernetes requires for the name of a namespace.
pub fn is_label(bytes: &[u8]) -> bool {
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let ends = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    bytes.len() <= MAX_LABEL && bytes.iter().all(inner) && ends(bytes.first()) && ends(bytes.last())
}
