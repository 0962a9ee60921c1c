//! The users whose connections and requests are counted.

use std::sync::Arc;

/// The user of a cluster. Users of two clusters with one name are two users.
pub type User = Arc<str>;
