use std::num::NonZeroUsize;
use std::sync::mpsc;

use tokio::sync::oneshot;

use super::*;
use crate::metrics::Build;
use crate::workers::Threads;

fn started(count: usize) -> (Workers, Threads, Heartbeat, Registry) {
    let (workers, threads) = Workers::start(NonZeroUsize::new(count).unwrap()).unwrap();
    let metrics = Registry::new(Build { component: "test", version: "0" });
    let heartbeat = workers.heartbeat(&metrics);
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
async fn a_worker_that_hangs_is_found_and_one_that_goes_on_is_well_again() {
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
        assert_eq!(workers.check().is_ok(), second <= 30, "{second}");
        heartbeat.beat(PERIOD, &tasks);
        settle(workers.at(0)).await;
    }
    assert_eq!(workers.check(), Err(Hangs { worker: WorkerId(1), seconds: 30 }));
    assert_eq!(workers.check().unwrap_err().to_string(), "worker 1 has run nothing for 30 s");
    assert_eq!(value(&metrics, "atoll_worker_silence_seconds"), "30");
    // The other worker has run each of its tasks.
    assert_eq!(value(&metrics, "atoll_worker_delay_seconds_count"), "31");
    release.send(()).unwrap();
    settle(workers.at(1)).await;
    assert_eq!(workers.check(), Ok(()));
    assert_eq!(value(&metrics, "atoll_worker_silence_seconds"), "0");
}

/// The heartbeat was paused, too: the worker may have done its work at once.
#[test]
fn a_pause_of_the_process_is_no_silence() {
    let pulse = Pulse::default();
    pulse.stay_silent(Duration::from_secs(3600));
    assert_eq!(pulse.silence.load(Ordering::Relaxed), 2000);
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

#[test]
fn one_long_wait_is_soon_forgotten_and_many_are_not() {
    let pulse = Pulse::default();
    let millis = Duration::from_millis;
    pulse.note(millis(30));
    assert!(!pulse.is_late());
    for _ in 0..8 {
        pulse.note(millis(12));
    }
    assert!(pulse.is_late());
    for _ in 0..8 {
        pulse.note(millis(1));
    }
    assert!(!pulse.is_late());
    pulse.note(Duration::MAX);
    pulse.note(Duration::MAX);
    assert!(pulse.is_late());
}

#[tokio::test]
async fn tasks_report_their_wait_on_the_thread_of_their_worker() {
    let (workers, _threads, ..) = started(2);
    let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
    let (sender, receiver) = oneshot::channel();
    let of_task = workers.clone();
    workers.at(1).spawn(&Tasks::new(), "test", async move {
        of_task.at(1).pulse.forget();
        assert!(!is_late());
        Given(long_ago).begun();
        sender.send(is_late()).unwrap();
    });
    assert_eq!(receiver.await, Ok(true));
    assert_eq!([0, 1].map(|number| workers.at(number).pulse.is_late()), [false, true]);
    // Not a worker.
    Given(long_ago).begun();
    assert!(!is_late());
}
