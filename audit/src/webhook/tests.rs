use std::collections::VecDeque;
use std::io;
use std::sync::Mutex;

use serde_json::Value;
use tokio::sync::mpsc;

use super::client::PostError;
use super::*;
use crate::budget::Budget;
use crate::metrics::{Metrics, WEBHOOK};

/// A webhook that fails as often as it is told.
struct Fake {
    failures: Arc<Mutex<VecDeque<()>>>,
    lists: mpsc::UnboundedSender<(Duration, Value)>,
    began: Instant,
}

struct Harness {
    queue: Queue,
    failures: Arc<Mutex<VecDeque<()>>>,
    lists: mpsc::UnboundedReceiver<(Duration, Value)>,
    registry: ops::metrics::Registry,
    tasks: Tasks,
}

impl Post for Fake {
    async fn post(&mut self, list: Bytes) -> Result<(), PostError> {
        let list = serde_json::from_slice(&list).unwrap();
        self.lists.send((self.began.elapsed(), list)).unwrap();
        let failed = self.failures.lock().unwrap().pop_front();
        let source = || io::Error::from(io::ErrorKind::ConnectionRefused);
        failed.map_or(Ok(()), |()| Err(PostError::Connect { address: "https://audit".to_owned(), source: source() }))
    }
}

fn harness(failures: usize) -> Harness {
    let registry = ops::metrics::Registry::new(ops::metrics::Build { component: "test", version: "0" });
    let (metrics, tasks) = (Metrics::new(&registry), Tasks::new());
    let lost = Arc::new(Lost::new(&metrics, &"ke-beijing".into(), WEBHOOK));
    let batch = config::Batch { max_size: std::num::NonZeroU32::new(3).unwrap(), ..config::Batch::default() };
    let kubeconfig = std::path::PathBuf::from("kubeconfig").into();
    let initial_backoff = ops::config::Duration::new(Duration::from_secs(10));
    let settings = config::Webhook { kubeconfig, initial_backoff, batch };
    let (queue, queued) = queue(100, Budget::of_memory(None).account(), Arc::clone(&lost));
    let failures = Arc::new(Mutex::new(VecDeque::from(vec![(); failures])));
    let (sender, lists) = mpsc::unbounded_channel();
    let post = Fake { failures: Arc::clone(&failures), lists: sender, began: Instant::now() };
    tasks.spawn("batches", Batches::new(queued, &settings, post, lost, tasks.clone()).run());
    Harness { queue, failures, lists, registry, tasks }
}

impl Harness {
    /// The next request: its time in seconds, and the events in it.
    async fn next(&mut self) -> (u64, Vec<i64>) {
        let (at, list) = self.lists.recv().await.unwrap();
        assert_eq!((&list["kind"], &list["apiVersion"]), (&"EventList".into(), &"audit.k8s.io/v1".into()));
        let items = list["items"].as_array().unwrap();
        (at.as_secs(), items.iter().map(|item| item["n"].as_i64().unwrap()).collect())
    }

    fn push(&self, numbers: std::ops::Range<i64>) {
        for n in numbers {
            self.queue.push(format!("{{\"n\":{n}}}\n").into());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_sent_when_it_is_full_or_old() {
    let mut harness = harness(0);
    harness.push(0..5);
    assert_eq!(harness.next().await, (0, vec![0, 1, 2]));
    assert_eq!(harness.next().await, (30, vec![3, 4]));
    sleep(Duration::from_secs(100)).await;
    harness.push(5..6);
    assert_eq!(harness.next().await, (160, vec![5]));
    harness.push(6..7);
    drop(harness.queue);
    let (at, list) = harness.lists.recv().await.unwrap();
    assert_eq!((at.as_secs(), list["items"][0]["n"].as_i64()), (160, Some(6)), "the last batch does not wait");
    assert!(harness.lists.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_sent_again_after_growing_pauses() {
    let mut harness = harness(2);
    harness.push(0..3);
    assert_eq!(harness.next().await, (0, vec![0, 1, 2]));
    let (second, numbers) = harness.next().await;
    assert!((10..=12).contains(&second) && numbers == [0, 1, 2], "{second}");
    let (third, _) = harness.next().await;
    assert!((15..=18).contains(&(third - second)), "{third}");
    harness.push(3..6);
    assert_eq!(harness.next().await, (third, vec![3, 4, 5]));
    assert!(!harness.registry.encode().contains("reason=\"failed\"} 3"));
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_is_down_loses_events_but_no_later_ones() {
    let mut harness = harness(5);
    harness.push(0..3);
    for _ in 0..5 {
        assert_eq!(harness.next().await.1, [0, 1, 2]);
    }
    harness.push(3..6);
    assert_eq!(harness.next().await.1, [3, 4, 5]);
    let text = harness.registry.encode();
    let lost = r#"atoll_audit_lost_events_total{backend="webhook",cluster="ke-beijing",reason="failed"} 3"#;
    assert!(text.contains(lost), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_process_sends_what_is_there() {
    let mut harness = harness(0);
    harness.push(0..1);
    tokio::task::yield_now().await;
    harness.push(1..5);
    let drained = harness.tasks.drain(Duration::from_secs(5), std::future::pending::<()>()).await;
    assert_eq!(drained, ops::drain::Drained::Clean);
    assert_eq!((harness.next().await, harness.next().await), ((0, vec![0, 1, 2]), (0, vec![3, 4])));
    assert!(harness.failures.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_a_limit_of_bytes_which_count_until_it_is_sent() {
    let mut harness = harness(1);
    let event = |n: i64| Bytes::from(format!("{{\"n\":{n},\"uri\":\"{}\"}}\n", "x".repeat(3 << 20)));
    harness.queue.push(event(0));
    harness.queue.push(event(1));
    assert_eq!(harness.next().await, (0, vec![0, 1]));
    // The queue is empty, but 6 of the 32 MiB wait for the next attempt.
    for n in 2..20 {
        harness.queue.push(event(n));
    }
    let lost = r#"atoll_audit_lost_events_total{backend="webhook",cluster="ke-beijing",reason="full"} 10"#;
    assert!(harness.registry.encode().contains(lost), "{}", harness.registry.encode());
    assert_eq!(harness.next().await.1, [0, 1]);
    assert_eq!(harness.next().await.1, [2, 3]);
}
