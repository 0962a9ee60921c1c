use std::num::NonZeroUsize;

use tokio::sync::oneshot;

use super::*;
use crate::drain::Tasks;
use crate::workers::Workers;

/// The heartbeat was also paused, so the worker may have run its tasks at once.
#[test]
fn a_pause_of_the_process_does_not_count_as_a_hang() {
    let delay = Delay::default();
    assert!(delay.expect(Duration::ZERO) && !delay.expect(Duration::from_secs(3600)));
    assert_eq!(delay.silence(), 2);
    delay.answer();
    assert_eq!(delay.silence(), 0);
    assert!(delay.expect(Duration::ZERO));
}

#[test]
fn one_long_wait_has_little_effect_and_many_have_more() {
    let delay = Delay::default();
    let millis = Duration::from_millis;
    delay.note(millis(30));
    assert!(!delay.is_late());
    for _ in 0..8 {
        delay.note(millis(12));
    }
    assert!(delay.is_late());
    for _ in 0..8 {
        delay.note(millis(1));
    }
    assert!(!delay.is_late());
    delay.note(Duration::MAX);
    delay.note(Duration::MAX);
    assert!(delay.is_late());
}

#[tokio::test]
async fn tasks_report_their_wait_on_the_thread_of_their_worker() {
    let (workers, _threads) = Workers::start(NonZeroUsize::new(2).unwrap()).unwrap();
    let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
    let (sender, receiver) = oneshot::channel();
    let of_task = workers.clone();
    workers.at(1).spawn(&Tasks::new(), "test", async move {
        of_task.at(1).delay.forget();
        assert!(!is_late());
        QueuedAt(long_ago).begun();
        sender.send(is_late()).unwrap();
    });
    assert_eq!(receiver.await, Ok(true));
    assert_eq!([0, 1].map(|number| workers.at(number).delay.is_late()), [false, true]);
    // Not a worker.
    QueuedAt(long_ago).begun();
    assert!(!is_late());
}
