//! The webhook: takes events from the queue, collects them to batches, and sends each as an `EventList`.
//!
//! The defaults and the retries are those of kube-apiserver (`plugin/pkg/audit/buffered` and `pkg/util/webhook`). Unlike
//! kube-apiserver, it sends one batch after the other, so that a webhook that does not respond gets only one request at a time.

mod client;
mod throttle;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use ops::drain::Tasks;
use ops::files::Reloader;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::debug;

use crate::budget::Account;
use crate::config;
use crate::lost::Lost;
use crate::queue::{Queue, Queued, Waiting, queue};
use client::{Client, Post};
use throttle::Throttle;

/// The number of attempts for a batch, and by how much the pause between them grows
/// (`DefaultRetryBackoffWithInitialDelay` in `pkg/util/webhook/webhook.go`).
const ATTEMPTS: u32 = 5;
const FACTOR: f64 = 1.5;
const JITTER: f64 = 0.2;

/// A batch that has so many bytes takes no more events.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Collects and sends batches.
struct Batches<P> {
    queued: Queued,
    settings: config::Batch,
    initial_backoff: Duration,
    throttle: Throttle,
    post: P,
    lost: Arc<Lost>,
    tasks: Tasks,
}

/// Starts the task of a webhook, which ends when the queue is dropped. Opens no connection yet.
pub(crate) fn open(
    settings: &config::Webhook,
    (account, lost): (Arc<Account>, Lost),
    reloader: &Reloader,
    tasks: &Tasks,
) -> Result<Queue, kubeconfig::OpenError> {
    let client_config = kubeconfig::watch(settings.kubeconfig.to_path_buf(), reloader)?;
    // So that a missing file is reported now.
    client_config.borrow().open(reloader)?;
    let lost = Arc::new(lost);
    let (queue, queued) = queue(length(settings.batch.buffer_size), account, Arc::clone(&lost));
    let post = Client::new(client_config, reloader.clone(), tasks.clone());
    let batches = Batches::new(queued, settings, post, lost, tasks.clone());
    tasks.spawn("audit webhook", batches.run());
    Ok(queue)
}

fn length(number: std::num::NonZeroU32) -> usize {
    usize::try_from(number.get()).unwrap_or(usize::MAX)
}

// === impl Batches ===

impl<P: Post> Batches<P> {
    fn new(queued: Queued, settings: &config::Webhook, post: P, lost: Arc<Lost>, tasks: Tasks) -> Self {
        let config::Webhook { initial_backoff, batch, .. } = settings;
        let throttle = Throttle::new(batch.throttle_qps, batch.throttle_burst);
        Self { queued, settings: *batch, initial_backoff: (*initial_backoff).into(), throttle, post, lost, tasks }
    }

    /// Sends batches until no more events come, or until the process ends.
    async fn run(mut self) {
        loop {
            let batch = self.collect().await;
            if batch.is_empty() {
                return;
            }
            self.send(batch).await;
        }
    }

    /// The next batch. Empty if no more events come.
    async fn collect(&mut self) -> Vec<Waiting> {
        let (tasks, limit) = (self.tasks.clone(), length(self.settings.max_size));
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let mut until = None;
        while batch.len() < limit && bytes < MAX_BYTES {
            let next = async {
                match until {
                    Some(until) => timeout_at(until, self.queued.next()).await.unwrap_or_default(),
                    None => self.queued.next().await,
                }
            };
            let next = tokio::select! {
                biased;
                next = next => next,
                // Only what is there already.
                () = tasks.cancelled() => self.queued.next_now(),
            };
            let Some(event) = next else { break };
            until.get_or_insert_with(|| Instant::now() + Duration::from(self.settings.max_wait));
            bytes += event.len();
            batch.push(event);
        }
        batch
    }

    /// Sends a batch, and tries again after a failure. While the process ends, there is one attempt.
    async fn send(&mut self, batch: Vec<Waiting>) {
        let list = event_list(&batch);
        // They count until the list is sent or lost.
        let charges: Vec<_> = batch.into_iter().map(Waiting::into_charge).collect();
        let mut backoff = self.initial_backoff;
        for attempt in 1.. {
            self.throttle.enter().await;
            let Err(error) = self.post.post(list.clone()).await else { return };
            if attempt >= ATTEMPTS || self.is_ending(backoff).await {
                return self.lost.failed(charges.len(), &error);
            }
            debug!(%error, attempt, "the audit webhook failed");
            backoff = backoff.mul_f64(FACTOR);
        }
    }

    /// Pauses. Returns early if the process ends.
    async fn is_ending(&self, pause: Duration) -> bool {
        tokio::select! {
            () = sleep(pause.mul_f64(1.0 + JITTER * fastrand::f64())) => false,
            () = self.tasks.cancelled() => true,
        }
    }
}

/// `EventList` of `audit.k8s.io/v1`.
fn event_list(events: &[Waiting]) -> Bytes {
    let mut list = BytesMut::from(r#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#);
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            list.extend_from_slice(b",");
        }
        list.extend_from_slice(event.trim_ascii_end());
    }
    list.extend_from_slice(b"]}");
    list.freeze()
}

#[cfg(test)]
mod tests;
