//! The parts of the envelope of every object, and of every object in it.

use kube_wire::envelope::{EnvelopeError, MAGIC};

use super::super::error::Unreadable;

/// `raw` of `runtime.Unknown` (apimachinery's `pkg/runtime/generated.proto`).
pub(super) const RAW: u32 = 2;
/// `metadata` of every kind, and of every list (for instance `Pod` and `PodList` in core/v1 generated.proto).
pub(in crate::view) const METADATA: u32 = 1;

/// Checks that the bytes begin with the prefix of every object.
pub(super) fn behind_magic(bytes: &[u8]) -> Result<usize, Unreadable> {
    if bytes.starts_with(&MAGIC) { Ok(MAGIC.len()) } else { Err(EnvelopeError::Magic.into()) }
}
