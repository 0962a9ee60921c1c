//! The memory that one object may need.

/// The size limit of one object in memory: three times the limit of etcd for a request (`--max-request-bytes`, 1.5 MiB),
/// because an object is longer in JSON than in etcd.
pub const DEFAULT_ITEM_LIMIT: usize = 8 << 20;
