use std::future::{pending, ready};
use std::io::{Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::*;

const LONG: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_tasks_to_end_by_themselves() {
    let tasks = Tasks::new();
    let begun = Instant::now();
    let ending = tasks.cancelled();
    tasks.spawn("connection", async move {
        ending.await;
        tokio::time::sleep(Duration::from_secs(3)).await;
    });
    assert_eq!(tasks.drain(LONG, pending::<()>()).await, Drained::Clean);
    assert_eq!(begun.elapsed().as_secs(), 3);
    assert_eq!(tasks.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_loop_ends_when_its_scope_is_cancelled() {
    let tasks = Tasks::new();
    tasks.spawn_until_cancelled("loop", pending());
    let begun = Instant::now();
    assert_eq!(tasks.drain(LONG, pending::<()>()).await, Drained::Clean);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn tasks_are_dropped_and_named_at_the_deadline() {
    let tasks = Tasks::new();
    let (held, dropped) = oneshot::channel::<()>();
    tasks.spawn("watch", async move {
        let _held = held;
        pending::<()>().await;
    });
    tasks.spawn("watch", pending());
    tasks.spawn("reload", ready(()));
    let begun = Instant::now();
    assert_eq!(tasks.drain(LONG, pending::<()>()).await, Drained::Deadline(vec![("watch", 2)]));
    assert_eq!(begun.elapsed(), LONG);
    assert!(dropped.await.is_err());
    assert_eq!(tasks.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_ends_at_once() {
    let tasks = Tasks::new();
    tasks.spawn("watch", pending());
    let begun = Instant::now();
    assert_eq!(tasks.drain(LONG, ready(())).await, Drained::Hurried(vec![("watch", 1)]));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_child_can_be_drained_alone() {
    let tasks = Tasks::new();
    let child = tasks.child();
    tasks.spawn("outer", pending());
    child.spawn("inner", child.cancelled());
    assert_eq!(tasks.running(), 2);
    assert_eq!(child.drain(LONG, pending::<()>()).await, Drained::Clean);
    assert!(!tasks.is_cancelled());
    assert_eq!(tasks.running(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_parent_ends_and_awaits_its_children() {
    let tasks = Tasks::new();
    let child = tasks.child().child();
    let stubborn = child.clone();
    child.spawn("inner", async move {
        stubborn.cancelled().await;
        pending::<()>().await;
    });
    assert_eq!(tasks.drain(LONG, pending::<()>()).await, Drained::Deadline(vec![("inner", 1)]));
    assert!(child.is_cancelled());
    assert_eq!(child.running(), 0);
}

#[tokio::test]
async fn a_panic_is_logged_and_ends_its_task_alone() {
    let log = Arc::new(tempfile::tempfile().unwrap());
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let guard = tracing::subscriber::set_default(subscriber);

    let tasks = Tasks::new();
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let span = tracing::info_span!("tunnel", agent = "site-a");
    let panicking = span.in_scope(|| tasks.spawn("broken", async { panic!("number {}", 7) }));
    tasks.spawn("sound", async move {
        count.fetch_add(1, Ordering::SeqCst);
    });
    assert!(panicking.await.is_ok(), "the panic was caught and logged inside");
    assert_eq!(tasks.drain(LONG, pending::<()>()).await, Drained::Clean);
    assert_eq!(ended.load(Ordering::SeqCst), 1);

    drop(guard);
    let mut text = String::new();
    (&*log).seek(SeekFrom::Start(0)).unwrap();
    (&*log).read_to_string(&mut text).unwrap();
    assert!(text.contains("ERROR tunnel{agent=\"site-a\"}"), "{text}");
    assert!(text.contains("task panicked task=\"broken\" panic=\"number 7\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn tasks_spawned_after_giving_up_are_never_polled() {
    let tasks = Tasks::new();
    tasks.spawn("watch", pending());
    tasks.drain(Duration::ZERO, pending::<()>()).await;
    let refused = tasks.spawn("refused", async { panic!("must not run") });
    assert!(refused.await.is_ok());
    assert_eq!(tasks.running(), 0);
}

#[tokio::test]
async fn the_first_and_the_second_signal_are_received() {
    let send = |signal: &str| {
        let kill = format!("kill -{signal} {}", std::process::id());
        let mut shell = std::process::Command::new("sh");
        assert!(shell.args(["-c", &kill]).status().unwrap().success());
    };
    let mut signals = Signals::install().unwrap();
    send("TERM");
    assert_eq!(signals.recv().await, Signal::Terminate);

    let tasks = Tasks::new();
    tasks.spawn("watch", pending());
    send("INT");
    assert_eq!(tasks.drain(LONG, signals.recv()).await, Drained::Hurried(vec![("watch", 1)]));
}
