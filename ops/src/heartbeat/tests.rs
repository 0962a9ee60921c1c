use std::num::NonZeroUsize;
use std::sync::mpsc;

use tokio::sync::oneshot;

use super::*;
use crate::metrics::Build;
use crate::workers::Threads;

fn started(count: usize) -> (Workers, Threads, Heartbeat, Registry) {
    let (workers, threads) = Workers::start(NonZeroUsize::new(count).unwrap()).unwrap();
    let metrics = Registry::new(Build { component: "test", version: "0" });
    let heartbeat = Heartbeat::new(&workers, &metrics);
    (workers, threads, heartbeat, metrics)
}

/// Returns when the worker has run all that it was given before.
async fn settle(worker: &Worker) {
    let (sender, receiver) = oneshot::channel();
    worker.spawn(&Tasks::new(), "test", async move { sender.send(()).unwrap() });
    receiver.await.unwrap();
}

fn value(metrics: &Registry, name: &str) -> String {
    let text = metrics.encode();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().to_owned()
}

#[tokio::test]
async fn a_hanging_worker_is_detected_until_it_continues() {
    let (workers, _threads, heartbeat, metrics) = started(2);
    let tasks = Tasks::new();
    let (release, held) = mpsc::channel::<()>();
    let (entered, hanging) = oneshot::channel();
    workers.at(1).spawn(&tasks, "test", async move {
        entered.send(()).unwrap();
        let _ = held.recv();
    });
    hanging.await.unwrap();
    for second in 0..=30 {
        assert_eq!(heartbeat.check().is_ok(), second <= 30, "{second}");
        heartbeat.beat(PERIOD, &tasks);
        settle(workers.at(0)).await;
    }
    assert_eq!(heartbeat.check(), Err(WorkerHangs { worker: workers.at(1).id(), seconds: 30 }));
    assert_eq!(heartbeat.check().unwrap_err().to_string(), "worker 1 has not run a task for 30 s");
    assert_eq!(value(&metrics, "atoll_worker_silence_seconds"), "30");
    // The other worker has run each of its tasks.
    assert_eq!(value(&metrics, "atoll_worker_delay_seconds_count"), "31");
    release.send(()).unwrap();
    settle(workers.at(1)).await;
    assert_eq!(heartbeat.check(), Ok(()));
    assert_eq!(value(&metrics, "atoll_worker_silence_seconds"), "0");
}

#[tokio::test(start_paused = true)]
async fn the_heartbeat_ends_with_its_tasks() {
    let (workers, _threads, heartbeat, _metrics) = started(1);
    let tasks = Tasks::new();
    let running = tasks.spawn("heartbeats", heartbeat.run(tasks.clone()));
    settle(workers.at(0)).await;
    tasks.cancel();
    running.await.unwrap();
}
