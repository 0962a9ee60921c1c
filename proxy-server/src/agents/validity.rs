//! Until when the tunnels of an agent may last.
//!
//! An agent that renews its certificate opens a new tunnel, and lets the streams of the old one end by themselves. Some last longer
//! than the old certificate. So while a newer certificate of the agent is valid, a tunnel may outlast its own for some time. It
//! gets no new streams then.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use protocol::AgentId;
use tokio::time::sleep;

/// The newest certificate of each agent that has registered.
#[derive(Debug, Default)]
pub struct Validity(Mutex<HashMap<AgentId, SystemTime>>);

/// How long a tunnel may outlast its own certificate.
pub(super) const GRACE_PERIOD: Duration = Duration::from_secs(3600);

/// The maximum time between two looks at the clock, because the system time can jump.
const MAX_SLEEP: Duration = Duration::from_secs(60);

// === impl Validity ===

impl Validity {
    /// Records that an agent has registered with a certificate that is valid until this time.
    pub(super) fn registered(&self, agent: &AgentId, until: SystemTime) {
        let mut newest = self.newest();
        let newest = newest.entry(agent.clone()).or_insert(until);
        *newest = until.max(*newest);
    }

    /// Completes when no certificate of the agent is valid any more.
    pub(super) async fn ended(&self, agent: &AgentId) {
        let newest = || self.newest().get(agent).copied();
        // The agent can register with a newer certificate meanwhile.
        while let Some(until) = newest() {
            reached(until).await;
            if newest() == Some(until) {
                break;
            }
        }
        self.newest().remove(agent);
    }

    fn newest(&self) -> MutexGuard<'_, HashMap<AgentId, SystemTime>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Completes at this time.
pub(super) async fn reached(time: SystemTime) {
    while let Ok(rest) = time.duration_since(SystemTime::now())
        && !rest.is_zero()
    {
        sleep(rest.clamp(Duration::from_millis(10), MAX_SLEEP)).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_lasts_as_long_as_the_newest_certificate() {
        let validity = Validity::default();
        let (agent, now) = ("site-a".parse().unwrap(), SystemTime::now());
        validity.registered(&agent, now + Duration::from_secs(3600));
        validity.registered(&agent, now + Duration::from_secs(60));
        assert!(timeout(Duration::from_secs(600), validity.ended(&agent)).await.is_err());
        let other = "site-b".parse().unwrap();
        validity.registered(&other, now);
        timeout(Duration::from_secs(600), validity.ended(&other)).await.unwrap();
        // All its tunnels end.
        timeout(Duration::from_secs(600), validity.ended(&other)).await.unwrap();
    }
}
