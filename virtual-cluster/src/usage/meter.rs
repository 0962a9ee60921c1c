//! Counts the objects of one resource.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use host_client::api::{ApiError, Read};
use kube_wire::watch::EventType;
use rewrite::ClusterName;
use rewrite::facts::{Facts, Frame, frame};
use tokio::time::Instant;
use tracing::debug;

use super::accounts::{Accounts, Held};
use crate::provisioner::MIRROR_LABEL;

/// The objects of one resource, in all namespaces of the host.
#[derive(Debug)]
pub(super) struct Meter {
    resource: Arc<str>,
    /// Random, so that nobody can find two names with the same digest.
    digests: RandomState,
    sizes: Sizes,
    listed: Listed,
}

/// The size of each object, by the digest of its name.
type Sizes = HashMap<u64, u32>;

/// The objects of the current list so far.
#[derive(Debug, Default)]
struct Listed {
    sizes: Sizes,
    by_namespace: HashMap<Box<str>, Held>,
}

/// What follows from a part of the list or the watch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Continue,
    /// The watch has reached this version.
    Reached(String),
    /// The list is complete.
    Listed,
    /// The host does not serve the resource.
    Refused,
}

// === impl Meter ===

impl Meter {
    pub(super) fn new(resource: Arc<str>) -> Self {
        Self { resource, digests: RandomState::new(), sizes: Sizes::new(), listed: Listed::default() }
    }

    /// Counts what was read. `owner` is the virtual cluster of a namespace.
    pub(super) fn take(
        &mut self,
        read: Read,
        accounts: &mut Accounts,
        owner: impl Fn(&str) -> Option<ClusterName>,
    ) -> Result<Step, ApiError> {
        match read {
            Read::Item(item) => {
                // An object that cannot be read must not prevent others from being counted.
                match Facts::read(item.get().as_bytes(), &[]) {
                    Ok(facts) => self.item(&facts, item.get().len()),
                    Err(error) => debug!(%error, resource = &*self.resource, "an object cannot be counted"),
                }
                Ok(Step::Continue)
            }
            Read::Listed(_) => {
                let Listed { sizes, by_namespace } = std::mem::take(&mut self.listed);
                self.sizes = sizes;
                accounts.replace(&self.resource, by_namespace, owner);
                Ok(Step::Listed)
            }
            Read::Frame(bytes) => match frame(&bytes, &[]).map_err(ApiError::unreadable)? {
                Frame::Change { event, object, facts } => {
                    self.event(event, &facts, object.len(), accounts, owner);
                    Ok(Step::Reached(facts.resource_version.into_owned()))
                }
                Frame::Bookmark(bookmark) => {
                    Ok(Step::Reached(String::from_utf8_lossy(&bookmark.resource_version).into_owned()))
                }
                Frame::Error { status } => Err(ApiError::of_event(&bytes[status])),
            },
            Read::Restarted { .. } => {
                self.listed = Listed::default();
                Ok(Step::Continue)
            }
            Read::Refused => {
                self.listed = Listed::default();
                Ok(Step::Refused)
            }
        }
    }

    fn item(&mut self, facts: &Facts<'_>, length: usize) {
        if is_own(facts) {
            return;
        }
        let size = clamped(length);
        let held = self.listed.by_namespace.entry((*facts.namespace).into()).or_default();
        // Between two pages, the object may have been deleted and created again.
        if let Some(before) = self.listed.sizes.insert(digest(&self.digests, facts), size) {
            *held -= Held::one(before.into());
        }
        *held += Held::one(size.into());
    }

    fn event(
        &mut self,
        event: EventType,
        facts: &Facts<'_>,
        length: usize,
        accounts: &mut Accounts,
        owner: impl Fn(&str) -> Option<ClusterName>,
    ) {
        let key = digest(&self.digests, facts);
        let size = (event != EventType::Deleted && !is_own(facts)).then(|| clamped(length));
        let before = match size {
            Some(size) => self.sizes.insert(key, size),
            None => self.sizes.remove(&key),
        };
        let change = [before, size].map(|size| size.map_or_else(Held::default, |size| Held::one(size.into())));
        // Copies of ClusterRoleBindings, too: clients decide how often they change.
        if event != EventType::Deleted {
            accounts.wrote(&facts.namespace, clamped(length).into(), Instant::now(), &owner);
        }
        accounts.change(&facts.namespace, &self.resource, change, owner);
    }
}

/// Whether this is a copy of a ClusterRoleBinding. They have limits of their own, and only the agent can write the label.
fn is_own(facts: &Facts<'_>) -> bool {
    facts.labels.iter().any(|label| label.key == MIRROR_LABEL)
}

fn digest(digests: &RandomState, facts: &Facts<'_>) -> u64 {
    digests.hash_one((&*facts.namespace, &*facts.name))
}

fn clamped(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
