//! The version of the newest state of a resource, which many watches need at the same time.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use hub::ResourceVersion;
use tokio::sync::Mutex;

/// Reads of the newest version, each of which serves all watches that were waiting when it began.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    /// The number of watches so far.
    arrived: AtomicU64,
    last: Mutex<Last>,
}

/// The last complete read.
#[derive(Debug, Default)]
struct Last {
    /// The number of watches that had arrived when it began.
    begun_after: u64,
    version: ResourceVersion,
}

// === impl Newest ===

impl Newest {
    /// The version of a state that existed after this call. `read` asks the host for it.
    pub(crate) async fn get<F>(&self, read: impl FnOnce() -> F) -> Option<ResourceVersion>
    where
        F: Future<Output = Option<ResourceVersion>>,
    {
        let before = self.arrived.fetch_add(1, Ordering::SeqCst);
        // If the watch that reads leaves, the next one reads.
        let mut last = self.last.lock().await;
        if before < last.begun_after {
            return Some(last.version);
        }
        let begun_after = self.arrived.load(Ordering::SeqCst);
        let version = read().await?;
        *last = Last { begun_after, version };
        Some(version)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ops::drain::Tasks;
    use tokio::sync::{mpsc, oneshot};
    use tokio::task::yield_now;

    use super::*;

    type Read = oneshot::Sender<Option<ResourceVersion>>;

    /// Begins to wait for the newest version. Returns where it arrives.
    fn begin(newest: &Arc<Newest>, reads: &mpsc::UnboundedSender<Read>, tasks: &Tasks) -> oneshot::Receiver<u64> {
        let (newest, reads, (sender, receiver)) = (Arc::clone(newest), reads.clone(), oneshot::channel());
        tasks.spawn("watch", async move {
            let read = || async move {
                let (answer, answered) = oneshot::channel();
                reads.send(answer).unwrap();
                answered.await.unwrap()
            };
            let found = newest.get(read).await;
            let _ = sender.send(found.map_or(0, ResourceVersion::number));
        });
        receiver
    }

    #[tokio::test]
    async fn a_read_serves_those_who_waited_when_it_began() {
        let (newest, tasks, (reads, mut begun)) = (Arc::default(), Tasks::new(), mpsc::unbounded_channel());
        let first = begin(&newest, &reads, &tasks);
        let read = begun.recv().await.unwrap();
        // These arrive while the first read runs, which may have read an older state.
        let later: Vec<_> = (0..3).map(|_| begin(&newest, &reads, &tasks)).collect();
        yield_now().await;
        read.send(Some(ResourceVersion::new(5))).unwrap();
        assert_eq!(first.await.unwrap(), 5);
        begun.recv().await.unwrap().send(Some(ResourceVersion::new(6))).unwrap();
        for later in later {
            assert_eq!(later.await.unwrap(), 6, "one read for all three");
        }
        assert!(begun.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_failed_read_serves_nobody() {
        let (newest, tasks, (reads, mut begun)) = (Arc::default(), Tasks::new(), mpsc::unbounded_channel());
        let watches: Vec<_> = (0..2).map(|_| begin(&newest, &reads, &tasks)).collect();
        begun.recv().await.unwrap().send(None).unwrap();
        begun.recv().await.unwrap().send(Some(ResourceVersion::new(7))).unwrap();
        let mut found = Vec::new();
        for watch in watches {
            found.push(watch.await.unwrap());
        }
        found.sort_unstable();
        assert_eq!(found, [0, 7]);
    }
}
