//! Waits of parallel writes until they are in force.

use tokio::time::Instant;

use super::*;

/// Each canary has a mark, and another one would replace it. Then, the host would never allow what the first one asks.
#[tokio::test(start_paused = true)]
async fn parallel_writes_do_not_wait_for_each_others_marks() {
    let host = FakeHost::new();
    let provisioner = agent(&host);
    with(&provisioner, async {
        provisioner.provisioned().await;
        // The caches of the host lag, so the first canary pauses while the others could write their marks.
        host.lock().reviews_behind = 1;
        let (begun, cluster) = (Instant::now(), vc());
        let wait = || provisioner.in_force(&cluster);
        tokio::join!(wait(), wait(), wait());
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    })
    .await;
}
