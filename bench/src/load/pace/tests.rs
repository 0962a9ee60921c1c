use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::sleep;

use super::*;

/// A server that answers after 10 ms, and once takes a break of a second.
#[derive(Clone)]
struct Paused {
    begun: Instant,
    answered: Arc<AtomicU64>,
}

/// One that refuses and forgets.
struct Failing(u16);

const USUAL: Duration = Duration::from_millis(10);
const BREAK: std::ops::Range<Duration> = Duration::from_secs(1)..Duration::from_secs(2);

fn limits(seconds: u64) -> Limits {
    Limits { duration: Duration::from_secs(seconds), requests: u64::MAX, timeout: Duration::from_secs(30) }
}

fn open(rate: u32) -> Pace {
    Pace::Open(NonZeroU32::new(rate).unwrap())
}

async fn paused(pace: Pace, workers: usize) -> Outcome {
    let server = Paused { begun: Instant::now(), answered: Arc::default() };
    let (outcome, exchanges) = run(vec![server.clone(); workers], pace, limits(10)).await;
    assert_eq!(exchanges.len(), workers);
    assert_eq!(outcome.answered(), server.answered.load(Ordering::Relaxed));
    assert_eq!(outcome.bytes, 100 * outcome.answered());
    outcome
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_hardly_sees_a_break() {
    let outcome = paused(Pace::Closed, 1).await;
    let latency = outcome.latency.summary();
    assert!((880..=910).contains(&outcome.answered()), "{}", outcome.answered());
    assert!(latency.p99 < 12.0 && latency.max > 999.0, "{latency:?}");
    assert_eq!(outcome.missed, 0);
}

#[tokio::test(start_paused = true)]
async fn an_open_loop_counts_who_had_to_wait_for_it() {
    // One worker: those that come during the break are sent late, each from its own intended time on.
    let outcome = paused(open(50), 1).await;
    let (latency, service) = (outcome.latency.summary(), outcome.service.summary());
    assert_eq!(outcome.answered(), 500);
    assert!(latency.p50 < 12.0 && latency.p90 > 300.0 && latency.p99 > 900.0, "{latency:?}");
    assert!(service.p99 < 12.0, "what each took by itself hides it: {service:?}");
    assert_eq!(outcome.missed, 0);
}

#[tokio::test(start_paused = true)]
async fn an_open_loop_keeps_its_rate_if_there_are_workers() {
    let outcome = paused(open(200), 250).await;
    assert_eq!((outcome.answered(), outcome.missed), (2_000, 0));
    // A tenth of the time everybody waits, half a second on average.
    let latency = outcome.latency.summary();
    assert!(latency.mean > 40.0 && latency.mean < 80.0, "{latency:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_in_time_is_told() {
    // One worker at 10 ms each does 100 a second, 9 s long.
    let outcome = paused(open(1_000), 1).await;
    assert!((880..=910).contains(&outcome.answered()), "{}", outcome.answered());
    assert_eq!(outcome.answered() + outcome.missed, 10_000);
    assert!(outcome.latency.summary().p50 > 4_000.0);
}

#[tokio::test(start_paused = true)]
async fn failures_are_counted_by_kind_and_are_no_latencies() {
    let limits = Limits { requests: 100, timeout: Duration::from_millis(50), ..limits(60) };
    let (outcome, _) = run(vec![Failing(0)], Pace::Closed, limits).await;
    assert_eq!((outcome.answered(), outcome.failed()), (50, 50));
    assert_eq!(outcome.failures[&FailureKind::Status(503)], (25, "number 4".to_owned()));
    assert_eq!(outcome.failures[&FailureKind::Timeout].0, 25);
    assert!(outcome.latency.summary().max < 12.0);
    assert!(outcome.failures_in_words().starts_with("25 x Status(503): number 4; 25 x Timeout: "));
}

#[tokio::test(start_paused = true)]
async fn time_ends_a_run_and_what_is_in_flight_is_waited_for() {
    let begun = Instant::now();
    let (outcome, _) = run(vec![Failing(1)], Pace::Closed, Limits { duration: USUAL / 2, ..limits(1) }).await;
    assert_eq!(outcome.answered(), 1);
    assert!(outcome.elapsed >= USUAL && begun.elapsed() < 2 * USUAL);
}

impl Exchange for Paused {
    async fn exchange(&mut self) -> Result<u64, Failure> {
        if BREAK.contains(&self.begun.elapsed()) {
            sleep_until(self.begun + BREAK.end).await;
        }
        sleep(USUAL).await;
        self.answered.fetch_add(1, Ordering::Relaxed);
        Ok(100)
    }
}

impl Exchange for Failing {
    async fn exchange(&mut self) -> Result<u64, Failure> {
        sleep(USUAL).await;
        self.0 += 1;
        match self.0 % 4 {
            0 => Err(Failure { kind: FailureKind::Status(503), example: format!("number {}", self.0) }),
            1 => std::future::pending().await,
            _ => Ok(1),
        }
    }
}
