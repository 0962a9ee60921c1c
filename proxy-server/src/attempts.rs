//! When a request is sent again, because the agent of its cluster has just left this proxy-server or another one.
//!
//! Only a request that nobody has processed is sent again.

use std::time::Duration;

use tokio::time::sleep;

use crate::registry::{NoAgent, Registry};

/// The mean time between two attempts. After it, this proxy-server knows where the agents of the cluster are.
const PAUSE: Duration = Duration::from_millis(200);

/// The attempts of one request.
#[derive(Debug)]
pub(crate) struct Attempts {
    left: u32,
}

// === impl Attempts ===

impl Default for Attempts {
    fn default() -> Self {
        Self { left: 5 }
    }
}

impl Attempts {
    /// Waits before the next attempt. Returns `false` if there is none.
    pub(crate) async fn pause(&mut self) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        sleep(PAUSE.mul_f64(0.5 + fastrand::f64())).await;
        true
    }
}

/// Whether an agent of the cluster may just have connected to another proxy-server.
pub(crate) fn may_be_elsewhere(registry: &Registry, absent: &NoAgent) -> bool {
    registry.peers().was_known() && absent.is_recent()
}
