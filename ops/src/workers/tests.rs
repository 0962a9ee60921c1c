use tokio::sync::oneshot;
use tokio::time::Instant;

use super::*;

fn workers(count: usize) -> (Workers, Threads) {
    Workers::start(NonZeroUsize::new(count).unwrap()).unwrap()
}

/// Where a task of this worker runs.
async fn place(worker: &Worker) -> Option<WorkerId> {
    let (sender, receiver) = oneshot::channel();
    worker.spawn(&Tasks::new(), "test", async move { sender.send(here()).unwrap() });
    receiver.await.unwrap()
}

#[tokio::test]
async fn a_task_runs_on_the_thread_of_its_worker() {
    let (workers, _threads) = workers(3);
    assert_eq!(here(), None);
    for number in 0..6 {
        assert_eq!(place(workers.at(number)).await, Some(WorkerId(number % 3)));
    }
}

#[tokio::test]
async fn a_connection_moves_only_to_another_worker() {
    let (workers, _threads) = workers(2);
    assert!(workers.are_several());
    assert!(workers.elsewhere(None).is_none(), "nobody knows where to");
    assert_eq!(workers.elsewhere(Some(WorkerId(1))).map(|worker| worker.id), Some(WorkerId(1)));
    let (sender, receiver) = oneshot::channel();
    let of_worker = workers.clone();
    workers.at(1).spawn(&Tasks::new(), "test", async move {
        of_worker.at(1).delay.forget();
        let moves = [0, 1].map(|number| of_worker.elsewhere(Some(WorkerId(number))).is_some());
        sender.send(moves).unwrap();
    });
    assert_eq!(receiver.await.unwrap(), [true, false]);
}

#[test]
fn connections_are_spread_evenly_also_after_some_have_left() {
    let (workers, _threads) = workers(3);
    let mut assigned: Vec<_> = (0..9).map(|_| workers.least().1).collect();
    let counts = |workers: &Workers| [0, 1, 2].map(|number| workers.at(number).assigned.load(Ordering::Relaxed));
    assert_eq!(counts(&workers), [3, 3, 3]);
    assigned.retain(|assignment| assignment.id != WorkerId(1));
    assert_eq!(counts(&workers), [3, 0, 3]);
    assigned.extend((0..3).map(|_| workers.least().1));
    assert_eq!(counts(&workers), [3, 3, 3]);
}

#[test]
fn a_connection_that_may_not_be_anywhere_is_not_assigned() {
    let (workers, _threads) = workers(2);
    let (worker, _assignment) = workers.least_of(|worker| worker != WorkerId(0)).unwrap();
    assert_eq!(worker.id(), WorkerId(1));
    assert!(workers.least_of(|_| false).is_none());
}

#[tokio::test]
async fn a_worker_is_busy_while_it_works() {
    const WORK: Duration = Duration::from_millis(20);
    let (workers, _threads) = workers(2);
    let total = || workers.at(1).handle.metrics().worker_total_busy_duration(0);
    let begun = Instant::now();
    let mut busy = BusyTime::new(&workers);
    let before = total();
    workers.at(1).spawn(&Tasks::new(), "test", async move {
        let begun = Instant::now();
        while begun.elapsed() < WORK {
            std::hint::spin_loop();
        }
    });
    while total() < before + WORK {
        tokio::task::yield_now().await;
    }
    busy.observe();
    let least = WORK.as_secs_f64() / begun.elapsed().as_secs_f64();
    assert!(busy.part(WorkerId(1)) >= least, "{busy:?}");
    assert!(busy.part(WorkerId(7)) <= 0.0, "there is no such worker");
}

#[tokio::test]
async fn connections_avoid_a_worker_that_is_late() {
    let (workers, _threads) = workers(3);
    let delay = |number: usize, seconds| workers.at(number).delay.note(Duration::from_secs(seconds));
    let least = || workers.least().0.id;
    let elsewhere = |number| workers.elsewhere(Some(WorkerId(number))).map(|worker| worker.id);
    assert_eq!((least(), elsewhere(1)), (WorkerId(0), Some(WorkerId(1))));
    delay(0, 2);
    assert_eq!((least(), elsewhere(0)), (WorkerId(1), Some(WorkerId(1))));
    delay(1, 1);
    assert_eq!((least(), elsewhere(0)), (WorkerId(2), Some(WorkerId(2))));
    delay(2, 3);
    // All are late.
    assert_eq!((least(), elsewhere(0)), (WorkerId(0), Some(WorkerId(1))));
    // A connection whose cluster is unknown leaves only a worker that is late.
    let (sender, receiver) = oneshot::channel();
    let of_worker = workers.clone();
    workers.at(2).spawn(&Tasks::new(), "test", async move {
        sender.send(of_worker.elsewhere(None).map(|worker| worker.id)).unwrap();
    });
    assert_eq!(receiver.await, Ok(Some(WorkerId(1))));
}

#[tokio::test]
async fn unassigned_connections_do_not_count() {
    let (workers, _threads) = workers(3);
    let likely = || workers.likely().id.0;
    // Equal workers take turns.
    assert_eq!([(); 6].map(|()| likely()), [0, 1, 2, 0, 1, 2]);
    let assign = |number: usize| {
        let (sender, receiver) = oneshot::channel();
        let of_worker = workers.clone();
        workers.at(number).spawn(&Tasks::new(), "test", async move {
            of_worker.at(number).delay.forget();
            sender.send(of_worker.assign()).unwrap();
        });
        receiver
    };
    let counted = [assign(0).await.unwrap(), assign(2).await.unwrap()];
    assert_eq!([(); 3].map(|()| likely()), [1; 3]);
    drop(counted);
    let _counted = assign(1).await.unwrap();
    assert_eq!([(); 4].map(|()| likely()).iter().filter(|number| **number == 1).count(), 0);
    assert!(workers.assign().is_none(), "not a worker");
}

#[tokio::test]
async fn workers_end_with_their_threads_and_drop_their_tasks() {
    let (workers, threads) = workers(1);
    let (held, mut dropped) = oneshot::channel::<()>();
    workers.at(0).spawn(&Tasks::new(), "test", async move {
        let _held = held;
        std::future::pending::<()>().await;
    });
    place(workers.at(0)).await;
    threads.end().await;
    assert_eq!(dropped.try_recv(), Err(oneshot::error::TryRecvError::Closed));
}

#[tokio::test]
async fn a_panic_ends_one_task_and_not_its_worker() {
    let (workers, _threads) = workers(1);
    let tasks = Tasks::new();
    workers.at(0).spawn(&tasks, "test", async { panic!("a mistake") });
    assert_eq!(place(workers.at(0)).await, Some(WorkerId(0)));
    tasks.drain(Duration::from_secs(60), std::future::pending::<()>()).await;
}

#[tokio::test]
async fn each_worker_has_a_value_of_its_own() {
    let (workers, _threads) = Workers::start(cores()).unwrap();
    let numbers = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&numbers);
    let values = Arc::new(PerWorker::new(move || counted.fetch_add(1, Ordering::Relaxed)));
    assert_eq!((*values.here(), *values.elsewhere()), (0, 0));
    for number in 0..cores().get() {
        let (sender, receiver) = oneshot::channel();
        let values = Arc::clone(&values);
        workers.at(number).spawn(&Tasks::new(), "test", async move { sender.send(*values.here()).unwrap() });
        assert_eq!(receiver.await, Ok(number + 1));
    }
    assert_eq!(values.iter().count(), cores().get() + 1);
}
