//! Streams with WebSocket.

use anyhow::{Context, ensure};
use futures::{AsyncBufReadExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{AttachParams, LogParams, PostParams};
use kube::runtime::{conditions, wait::await_condition};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::World;

/// A running pod. The first check that needs it creates it.
async fn shell(world: &World) -> anyhow::Result<Api<Pod>> {
    let pods: Api<Pod> = world.api();
    if pods.get_opt("shell").await?.is_none() {
        let containers = json!([{"name": "ticker", "image": "busybox"}]);
        let pod = json!({"metadata": {"name": "shell"}, "spec": {"containers": containers}});
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    }
    await_condition(pods.clone(), "shell", conditions::is_pod_running()).await?;
    Ok(pods)
}

pub(crate) async fn exec(world: &World) -> anyhow::Result<()> {
    let pods = shell(world).await?;
    let attach = AttachParams::default().stdin(true).stdout(true).stderr(true);
    let mut process = pods.exec("shell", ["sh", "-c", "cat; echo problem >&2; exit 3"], &attach).await?;
    let ended = process.take_status().context("no status")?;
    let mut stdin = process.stdin().context("no stdin")?;
    let (mut stdout, mut stderr) = (process.stdout().context("no stdout")?, process.stderr().context("no stderr")?);
    let typed = "0123456789abcdef".repeat(1 << 14);
    let (mut out, mut problem) = (String::new(), String::new());
    let typing = async {
        stdin.write_all(typed.as_bytes()).await?;
        // Dropping it closes standard input.
        stdin.shutdown().await?;
        drop(stdin);
        Ok(())
    };
    tokio::try_join!(typing, stdout.read_to_string(&mut out), stderr.read_to_string(&mut problem))?;
    ensure!(out == typed, "{} of {} bytes came back", out.len(), typed.len());
    ensure!(problem == "problem\n", "{problem:?}");
    let status = ended.await.context("it ended without a status")?;
    let mut causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    let code = causes.find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    ensure!(code.is_some_and(|cause| cause.message.as_deref() == Some("3")), "{status:?}");
    Ok(())
}

pub(crate) async fn port_forward(world: &World) -> anyhow::Result<()> {
    let pods = shell(world).await?;
    let mut forwarder = pods.portforward("shell", &[80]).await?;
    let mut stream = forwarder.take_stream(80).context("no stream")?;
    stream.write_all(b"GET /status/418 HTTP/1.1\r\nHost: shell\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    ensure!(answer.starts_with("HTTP/1.1 418 "), "{answer:?}");
    Ok(())
}

pub(crate) async fn logs(world: &World) -> anyhow::Result<()> {
    let pods = shell(world).await?;
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut lines = pods.log_stream("shell", &follow).await?.lines();
    // The first three lines exist, and the others are written during the read.
    for number in 1..=5 {
        let line = lines.try_next().await?.context("the log ended")?;
        ensure!(number > 3 || line == format!("line {number} of container ticker"), "{line:?}");
    }
    let past = pods.logs("shell", &LogParams { tail_lines: Some(1), ..LogParams::default() }).await?;
    ensure!(past.lines().count() == 1 && past.starts_with("tick "), "{past:?}");
    Ok(())
}
