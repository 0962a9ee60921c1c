//! What clients write: bodies and patches, in host names.

pub(super) mod deletion;
pub(super) mod generate;
pub(super) mod mapped;
pub(super) mod mapper;
pub(super) mod namespace;
pub(super) mod node_ports;
pub(super) mod object;
pub(super) mod patch;
pub(super) mod yaml;
