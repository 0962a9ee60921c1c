//! What the agent asks the host while it decides about a request.

pub(super) mod error;
pub(super) mod parsed;
pub(super) mod read;
pub(super) mod sample;
pub(super) mod status;
