//! A bad network for the duration of a measurement.

use std::io::Write;

use anyhow::Context as _;
use link_emulator::{CLOUD, Link, Quality, SITE, Traffic};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::watch;

/// Connect two network namespaces by a bad network, until the end of standard input.
///
/// Each line of standard input is a JSON object with the state of the network from now on. The command responds to each with
/// a line: what the network has carried before it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Fields of a line, with their defaults:\n  \
    roundTripMillis: 0       the round-trip time of a small packet\n  \
    lostPerMille: 0          the packets of a thousand that are lost, in each direction\n  \
    kilobits: null           the rate of each direction in kbit/s; null: any\n  \
    mtu: 1500                the longest IP packet in bytes\n  \
    natExpirySeconds: null   after which idle time a NAT forgets a connection; null: never\n  \
    dead: false              whether all packets are lost\n\n\
    Example:\n  \
    (echo '{\"roundTripMillis\": 50, \"lostPerMille\": 10}'; sleep 60) | bench link bad &\n  \
    ip netns exec bad-site ping 198.51.100.1")]
pub(crate) struct Args {
    /// Make the namespaces NAME-cloud (198.51.100.1) and NAME-site (198.51.100.2).
    name: String,
}

pub(crate) async fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let link = Link::open(&args.name)?;
    let (cloud, site) = (link.namespaces().cloud().to_owned(), link.namespaces().site().to_owned());
    let (set, quality) = watch::channel(Quality::default());
    let (carried, seen) = watch::channel(Traffic::default());
    writeln!(out, "{cloud} {CLOUD}\n{site} {SITE}\nready")?;
    out.flush()?;
    tokio::select! {
        carrying = link.run(quality, &carried) => carrying,
        done = follow(set, seen, out) => done,
        signal = ops::drain::signal() => signal.map(drop).context("cannot handle signals"),
    }
}

/// Sets the state of the network line by line.
async fn follow(
    set: watch::Sender<Quality>,
    mut carried: watch::Receiver<Traffic>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.context("cannot read standard input")? {
        let quality = serde_json::from_str(&line).with_context(|| format!("{line:?} is no state of a network"))?;
        set.send_replace(quality);
        carried.changed().await?;
        let Traffic { cloud_bytes, site_bytes, lost, refused } = *carried.borrow_and_update();
        writeln!(
            out,
            "{{\"cloudBytes\": {cloud_bytes}, \"siteBytes\": {site_bytes}, \"lost\": {lost}, \"refused\": {refused}}}"
        )?;
        out.flush()?;
    }
    Ok(())
}
