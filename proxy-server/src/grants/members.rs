//! What agents ask for in Karmada, until it is on disk.
//!
//! An agent may send other settings at any rate. They are written with a period, so that it costs neither this process nor Karmada
//! more than one change of each cluster in that time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube_wire::selector::LabelSelector;
use protocol::registration::Mode;
use protocol::{AgentId, Offer};
use tracing::warn;

use super::store::{Added, Changes};

/// The settings that differ from those on disk.
#[derive(Debug, Default)]
pub(super) struct Members {
    changes: Mutex<Changes>,
    /// What was last logged about the settings of an agent.
    reported: Mutex<HashMap<AgentId, String>>,
}

// === impl Members ===

impl Members {
    /// Notes what an agent asks for. `is_allowed` says whether its grant lets it choose.
    pub(super) fn note(&self, agent: &AgentId, offers: &[Offer], added: &Added, is_allowed: bool) {
        let mut ignored = Vec::new();
        let mut changes = self.changes();
        changes.retain(|_, (by, _)| by != agent);
        for offer in offers.iter().filter(|offer| offer.mode == Mode::Virtual) {
            let Some(cluster) = added.get(&offer.name).filter(|cluster| cluster.agent == *agent) else { continue };
            let member = match &offer.member {
                Some(_) if !is_allowed => {
                    ignored.push(format!("{}: the grant of the agent has no `memberSettings: true`", offer.name));
                    None
                }
                Some(member) => match member.mistake(is_label) {
                    None => Some(member.clone()),
                    Some(mistake) => {
                        ignored.push(format!("{}: {mistake}", offer.name));
                        None
                    }
                },
                None => None,
            };
            if member != cluster.member {
                changes.insert(offer.name.clone(), (agent.clone(), member));
            }
        }
        drop(changes);
        self.report(agent, &ignored);
    }

    /// The changes since the last call.
    pub(super) fn take(&self) -> Changes {
        std::mem::take(&mut *self.changes())
    }

    /// Changes that could not be written. Newer ones replace them.
    pub(super) fn put_back(&self, failed: Changes) {
        let mut changes = self.changes();
        for (name, change) in failed {
            changes.entry(name).or_insert(change);
        }
    }

    /// Logs the first of the ignored settings, once.
    fn report(&self, agent: &AgentId, ignored: &[String]) {
        let text = ignored.first().cloned().unwrap_or_default();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let before =
            if text.is_empty() { reported.remove(agent) } else { reported.insert(agent.clone(), text.clone()) };
        if !text.is_empty() && before.as_ref() != Some(&text) {
            warn!(%agent, clusters = ignored.len(), first = text, "ignoring what the agent asks for in Karmada");
        }
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_label(key: &str, value: &str) -> bool {
    LabelSelector::from_labels([(key, value)]).is_ok()
}
