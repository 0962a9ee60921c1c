use std::num::NonZeroUsize;

use tokio::sync::oneshot;

use super::*;
use crate::drain::Tasks;
use crate::workers::Workers;

/// The heartbeat was also paused, so the worker may have run its tasks at once.
#[test]
fn a_pause_of_the_process_is_no_silence() {
    let pulse = Pulse::default();
    assert!(pulse.expect(Duration::ZERO) && !pulse.expect(Duration::from_secs(3600)));
    assert_eq!(pulse.silence(), 2);
    pulse.answer();
    assert_eq!(pulse.silence(), 0);
    assert!(pulse.expect(Duration::ZERO));
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
    let (workers, _threads) = Workers::start(NonZeroUsize::new(2).unwrap()).unwrap();
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
