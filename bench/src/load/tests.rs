use clap::Parser;
use tempfile::TempDir;

use super::*;
use crate::upstream;

#[derive(Parser)]
struct Load {
    #[command(flatten)]
    args: Args,
}

#[derive(Parser)]
struct Upstream {
    #[command(flatten)]
    args: upstream::Args,
}

/// An upstream on loopback.
struct World {
    dir: TempDir,
    url: String,
    _tasks: Tasks,
}

const SMALL: &str = "/api/v1/namespaces/edge/pods/bench-small";

impl World {
    async fn new() -> Self {
        let (dir, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
        let args = ["x", "--pods", "10", "--dir", dir.path().to_str().unwrap()];
        let (url, accepting) = upstream::open(&Upstream::parse_from(args).args, &tasks).await.unwrap();
        tasks.spawn("accepting", accepting);
        Self { dir, url, _tasks: tasks }
    }

    async fn load(&self, path: &str, flags: &[&str]) -> anyhow::Result<serde_json::Value> {
        let url = format!("{}{path}", self.url);
        let ca = self.dir.path().join("upstream-ca.crt");
        let usual = ["x", "--url", &url, "--ca", ca.to_str().unwrap(), "--warmup", "0", "--duration", "1m", "--json"];
        let mut out = Vec::new();
        run(Load::parse_from(usual.iter().chain(flags)).args, &mut out).await?;
        Ok(serde_json::from_slice(&out)?)
    }
}

#[tokio::test]
async fn every_kind_of_connection_gets_complete_responses() {
    let world = World::new().await;
    for flags in [
        &["--http", "1"][..],
        &["--http", "2"],
        &["--http", "2", "--connections", "3"],
        &["--http", "1", "--fresh"],
        &["--http", "2", "--fresh"],
        &["--http", "1", "--rate", "10000"],
    ] {
        let report = world.load(SMALL, &[flags, &["--concurrency", "5", "--requests", "100"]].concat()).await.unwrap();
        assert_eq!((&report["requests"], &report["errors"]), (&100.into(), &0.into()), "{flags:?} {report}");
        let per_second = |key: &str| report[key].as_f64().unwrap();
        let size = per_second("megabytesPerSecond") * 1e6 / per_second("requestsPerSecond");
        assert!((3_800.0..4_000.0).contains(&size), "{flags:?} {size}");
        assert_eq!(report["processes"][0]["name"], "bench");
    }
}

#[tokio::test]
async fn error_statuses_fail_the_run() {
    let world = World::new().await;
    let error = world.load("/version", &["--requests", "3"]).await.unwrap_err();
    assert_eq!(error.to_string(), "no successful response: 3 x Status(404): {}");
}

#[tokio::test]
async fn a_server_with_an_untrusted_certificate_gets_no_request() {
    let (world, other) = (World::new().await, World::new().await);
    std::fs::copy(other.dir.path().join("upstream-ca.crt"), world.dir.path().join("upstream-ca.crt")).unwrap();
    let error = world.load(SMALL, &["--requests", "1"]).await.unwrap_err();
    assert!(error.to_string().contains("Connect: the TLS handshake failed: invalid peer certificate"), "{error}");
}
