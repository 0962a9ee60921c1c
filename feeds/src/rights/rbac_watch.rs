//! One of the watches of RBAC objects.

use std::time::Duration;

use bytes::Bytes;
use host_client::api::{Api, ApiError, Read, Selection, Source};
use rewrite::facts::{Frame, frame};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};

use super::concern::{Concern, Resource};
use super::leases::Leases;
use super::scopes::Scopes;

/// The interval in which a watch renews its lease.
const TICK: Duration = Duration::from_secs(1);

/// A watch that is silent for longer than this is not current. kube-apiserver sends a bookmark each minute.
const SILENCE: Duration = Duration::from_secs(90);

/// After a break, the watch is not current before it has been open for this time. The host sends the changes in the meantime
/// when the watch begins.
const RESUMPTION: Duration = Duration::from_secs(2);

/// Watches one resource, and reports changes.
pub(super) struct RbacWatch<'r> {
    resource: Resource,
    scopes: &'r Scopes,
    leases: &'r Leases,
    source: Source,
    /// When the host last sent something.
    heard: Instant,
    /// Since when the watch has been open, as far as this was seen.
    open: Option<Instant>,
    is_current: bool,
}

// === impl RbacWatch ===

impl<'r> RbacWatch<'r> {
    pub(super) fn new(api: &Api, resource: Resource, scopes: &'r Scopes, leases: &'r Leases) -> Self {
        let source = Source::of_changes(api, resource.path(), Selection::default().metadata());
        Self { resource, scopes, leases, source, heard: Instant::now(), open: None, is_current: false }
    }

    /// Watches forever.
    pub(super) async fn run(&mut self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                read = self.source.next() => {
                    if let Err(error) = self.take(read) {
                        self.source.fail(error);
                    }
                }
                _ = ticks.tick() => self.renew(),
            }
        }
    }

    fn take(&mut self, read: Read) -> Result<(), ApiError> {
        match read {
            Read::Item(_) => {}
            // Changes before this version may have been missed.
            Read::Listed(_) => self.scopes.note(&Concern::Everybody),
            Read::Frame(bytes) => {
                self.heard = Instant::now();
                self.frame(&bytes)?;
            }
            Read::Restarted { .. } | Read::Refused => {
                self.leases.end(self.resource);
                self.open = None;
            }
        }
        Ok(())
    }

    fn frame(&mut self, bytes: &Bytes) -> Result<(), ApiError> {
        // If a frame cannot be read, its changes are not lost: the next watch begins with a check of all rights.
        match frame(bytes, &[]).map_err(ApiError::unreadable)? {
            Frame::Change { facts, .. } => {
                self.scopes.note(&self.resource.concern(&facts));
                self.source.reached(&facts.resource_version);
                Ok(())
            }
            Frame::Bookmark(bookmark) => {
                self.source.reached(&String::from_utf8_lossy(&bookmark.resource_version));
                Ok(())
            }
            Frame::Error { status } => Err(ApiError::of_event(&bytes[status])),
        }
    }

    /// Renews the lease if the watch is current.
    fn renew(&mut self) {
        let (now, leases) = (Instant::now(), self.leases);
        self.open = self.source.is_watching().then(|| self.open.unwrap_or(now));
        if let Some(open) = self.open {
            let is_complete = leases.is_held(self.resource, now) || now >= open + RESUMPTION;
            if is_complete && now < self.heard.max(open) + SILENCE {
                leases.renew(self.resource, now);
            }
        }
        let is_current = leases.is_held(self.resource, now);
        if is_current != self.is_current {
            self.is_current = is_current;
            let path = self.resource.path();
            if is_current {
                info!(path, "watching RBAC changes of the host");
            } else {
                warn!(path, "cannot watch RBAC changes of the host; reviewing rights before each batch of events");
            }
        }
    }
}
