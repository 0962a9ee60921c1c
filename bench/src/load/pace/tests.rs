use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::sleep;

use super::*;

/// A server that responds after 10 ms, with one pause of a second.
#[derive(Clone)]
struct Paused {
    begun: Instant,
    answered: Arc<AtomicU64>,
}

/// A server that returns errors, or no response.
struct Failing(u16);

const USUAL: Duration = Duration::from_millis(10);
const BREAK: std::ops::Range<Duration> = Duration::from_secs(1)..Duration::from_secs(2);

fn limits(seconds: u64) -> Limits {
    Limits { duration: Duration::from_secs(seconds), requests: u64::MAX, timeout: Duration::from_secs(30) }
}

fn open(rate: u32) -> Pace {
    Pace::Open(NonZeroU32::new(rate).unwrap().into())
}

async fn paused(pace: Pace, workers: usize) -> Outcome {
    let server = Paused { begun: Instant::now(), answered: Arc::default() };
    let (outcome, exchanges) = run(vec![server.clone(); workers], pace, limits(10)).await;
    assert_eq!(exchanges.len(), workers);
    assert_eq!(outcome.succeeded(), server.answered.load(Ordering::Relaxed));
    assert_eq!(outcome.bytes, 100 * outcome.succeeded());
    outcome
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_hides_a_pause_of_the_server() {
    let outcome = paused(Pace::Closed, 1).await;
    let latency = outcome.latency.summary();
    assert!((880..=910).contains(&outcome.succeeded()), "{}", outcome.succeeded());
    assert!(latency.p99 < 12.0 && latency.max > 999.0, "{latency:?}");
    assert_eq!(outcome.missed, 0);
}

#[tokio::test(start_paused = true)]
async fn an_open_loop_includes_a_pause_of_the_server() {
    // With one worker, the requests during the pause are sent late. Their latency counts from the scheduled time.
    let outcome = paused(open(50), 1).await;
    let (latency, service) = (outcome.latency.summary(), outcome.service.summary());
    assert_eq!(outcome.succeeded(), 500);
    assert!(latency.p50 < 12.0 && latency.p90 > 300.0 && latency.p99 > 900.0, "{latency:?}");
    assert!(service.p99 < 12.0, "what each took by itself hides it: {service:?}");
    assert_eq!(outcome.missed, 0);
}

#[tokio::test(start_paused = true)]
async fn an_open_loop_keeps_its_rate_if_there_are_workers() {
    let outcome = paused(open(200), 250).await;
    assert_eq!((outcome.succeeded(), outcome.missed), (2_000, 0));
    // During a tenth of the time, all requests wait for half a second on average.
    let latency = outcome.latency.summary();
    assert!(latency.mean > 40.0 && latency.mean < 80.0, "{latency:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_that_cannot_be_sent_are_counted() {
    // One worker with 10 ms for each request sends 100 requests per second for 9 s.
    let outcome = paused(open(1_000), 1).await;
    assert!((880..=910).contains(&outcome.succeeded()), "{}", outcome.succeeded());
    assert_eq!(outcome.succeeded() + outcome.missed, 10_000);
    assert!(outcome.latency.summary().p50 > 4_000.0);
}

#[tokio::test(start_paused = true)]
async fn failures_are_counted_by_kind_and_have_no_latency() {
    let limits = Limits { requests: 100, timeout: Duration::from_millis(50), ..limits(60) };
    let (outcome, _) = run(vec![Failing(0)], Pace::Closed, limits).await;
    assert_eq!((outcome.succeeded(), outcome.failed()), (50, 50));
    assert_eq!(outcome.failures[&FailureKind::Status(503)], (25, "number 4".to_owned()));
    assert_eq!(outcome.failures[&FailureKind::Timeout].0, 25);
    assert!(outcome.latency.summary().max < 12.0);
    assert!(outcome.describe_failures().starts_with("25 x Status(503): number 4; 25 x Timeout: "));
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_requests_in_flight_at_its_end() {
    let begun = Instant::now();
    let (outcome, _) = run(vec![Failing(1)], Pace::Closed, Limits { duration: USUAL / 2, ..limits(1) }).await;
    assert_eq!(outcome.succeeded(), 1);
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
