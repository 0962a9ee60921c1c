//! How much of a limit is in use.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `3/1000`: three of a thousand are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// The number in use. It can exceed a limit that was lowered.
    pub used: u64,
    /// The limit.
    pub limit: u64,
}

// === impl Used ===

impl Used {
    /// A pair of counts.
    pub fn new(used: usize, limit: usize) -> Self {
        Self { used: used as u64, limit: limit as u64 }
    }

    /// The same in MiB instead of bytes. What is in use is rounded up, and the limit down.
    #[must_use]
    pub fn in_mib(self) -> Self {
        const MIB: u64 = 1024 * 1024;
        Self { used: self.used.div_ceil(MIB), limit: self.limit / MIB }
    }
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.used, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_mib() {
        let bytes = Used::new(1, 3 * 1024 * 1024 - 1);
        assert_eq!([bytes.to_string(), bytes.in_mib().to_string()], ["1/3145727", "1/2"]);
    }
}
