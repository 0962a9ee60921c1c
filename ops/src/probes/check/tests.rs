use std::future::{pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn sound() -> Checks {
    Checks::new().with("tunnel", SECOND, || ready(Ok::<(), &str>(())))
}

async fn get(checks: &Checks, query: &str) -> (u16, String) {
    let answer = checks.answer("readyz", &Query::new(query)).await;
    (answer.status().as_u16(), String::from_utf8(answer.body().to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_passing_probe_is_ok_and_lists_its_checks_on_request() {
    assert_eq!(get(&sound(), "").await, (200, "ok".into()));
    assert_eq!(get(&sound(), "verbose").await, (200, "[+]ping ok\n[+]tunnel ok\nreadyz check passed\n".into()));
    assert_eq!(get(&Checks::new(), "").await, (200, "ok".into()));
}

#[tokio::test(start_paused = true)]
async fn a_failing_probe_names_the_check_and_the_reason() {
    let checks = sound().with("host", SECOND, || ready(Err("connection\nrefused")));
    let failed = "[+]ping ok\n[+]tunnel ok\n[-]host failed: connection refused\nreadyz check failed\n";
    assert_eq!(get(&checks, "").await, (503, failed.into()));
    assert_eq!(get(&checks, "exclude=host").await, (200, "ok".into()));
    assert_eq!(
        get(&checks, "verbose&exclude=host&exclude=hots").await,
        (
            200,
            "[+]ping ok\n[+]tunnel ok\n[+]host excluded: ok\n\
             warn: there is no check \"hots\" to exclude\nreadyz check passed\n"
                .into()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn checks_run_concurrently_with_a_timeout() {
    let checks = sound().with("stuck", SECOND, pending::<Result<(), String>>).with("slow", 3 * SECOND, || async {
        tokio::time::sleep(2 * SECOND).await;
        Ok::<(), String>(())
    });
    let begun = Instant::now();
    let (status, text) = get(&checks, "").await;
    assert_eq!(status, 503);
    assert!(text.contains("[-]stuck failed: no response within 1s\n[+]slow ok\n"), "{text}");
    assert_eq!(begun.elapsed(), 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn concurrent_probes_share_one_check() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let checks = Checks::new().with("host", SECOND, move || {
        count.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(SECOND / 2).await;
            Ok::<(), String>(())
        }
    });
    let probes = (0..100).map(|_| async { get(&checks, "").await.0 });
    assert!(all(probes).await.iter().all(|status| *status == 200));
    assert_eq!(runs.load(Ordering::SeqCst), 1);

    tokio::time::advance(CACHE_TIME).await;
    get(&checks, "").await;
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_probe_does_not_cancel_the_check() {
    let checks = Checks::new().with("host", SECOND, || async {
        tokio::time::sleep(SECOND / 2).await;
        Ok::<(), String>(())
    });
    assert!(timeout(SECOND / 4, get(&checks, "")).await.is_err());
    assert_eq!(get(&checks, "").await.0, 200);
}
