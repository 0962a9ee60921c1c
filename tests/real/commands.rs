//! kubectl commands that must have the same outcome on a plain host and on a virtual cluster.
//!
//! The commands are in `commands/*.txt`, one script for each area, in the syntax of `atoll_tests::compare`. There is
//! one test for each script and each kind of virtual cluster: one on a real host, and one of `atoll demo`. The known
//! differences, with their reasons, are in `commands/known/virtual.txt` (all virtual clusters),
//! `commands/known/demo.txt` (additional differences of `atoll demo`, because its host is dev-apiserver) and
//! `commands/known/kubeedge.txt` (hosts with KubeEdge). [`plain_host`], [`virtual_cluster`] and [`demo_cluster`] start
//! the sides when the first of these tests runs.

mod demo_cluster;
mod plain_host;
mod virtual_cluster;

use std::sync::{Arc, OnceLock};

use anyhow::{Context, anyhow, bail};
use atoll_tests::compare::{Known, Pair, Script};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::paths;
use libtest_mimic::Trial;

use self::demo_cluster::DemoCluster;
use self::plain_host::PlainHost;
use self::virtual_cluster::VirtualCluster;

use crate::trial::trial;

/// The environment variable for the second side: a virtual cluster (`virtual`), or another plain host (`hosts`).
const SECOND_SIDE_VARIABLE: &str = "ATOLL_COMMANDS";

const FOLDER: &str = "tests/real/commands";

/// The second side of a comparison. The first one is a plain host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Second {
    /// A virtual cluster on a real host.
    Virtual,
    /// A virtual cluster of `atoll demo`, to find differences between dev-apiserver and Kubernetes.
    Demo,
    /// Another plain host, to find errors in the scripts and in the comparison.
    Plain,
}

/// Both sides and their processes. The fields are dropped in this order: processes before the hosts that they use.
struct World {
    pair: Pair,
    _virtual_cluster: Option<VirtualCluster>,
    _demo: Option<DemoCluster>,
    _plain: PlainHost,
    _other: Option<PlainHost>,
}

pub(crate) fn trials() -> Vec<Trial> {
    let all = || {
        let scripts = Arc::new(Script::folder(&paths::workspace().join(FOLDER))?);
        let seconds: &[Second] = match std::env::var(SECOND_SIDE_VARIABLE).as_deref() {
            Ok("hosts") => &[Second::Plain],
            // dev-apiserver has the version of the newest Kubernetes, which differs from that of KubeEdge.
            Ok("virtual") | Err(_) if everywhere_kubeedge() => &[Second::Virtual],
            Ok("virtual") | Err(_) => &[Second::Virtual, Second::Demo],
            Ok(other) => bail!("{SECOND_SIDE_VARIABLE}={other} is neither `virtual` nor `hosts`"),
        };
        for second in seconds {
            Known::check(&second.known()?, &scripts)?;
        }
        anyhow::Ok(seconds.iter().flat_map(|second| table_trials(*second, &scripts)).collect())
    };
    all().unwrap_or_else(|error| vec![trial("commands::table", move || Err(error))])
}

fn table_trials(second: Second, scripts: &Arc<Vec<Script>>) -> Vec<Trial> {
    let world = Arc::new(OnceLock::new());
    (0..scripts.len())
        .map(|at| {
            let (scripts, world) = (Arc::clone(scripts), Arc::clone(&world));
            trial(format!("{}::{}", second.suite(), scripts[at].name), move || {
                let world = world.get_or_init(|| World::start(second, &scripts));
                let world = world.as_ref().map_err(|error| anyhow!("cannot start the two sides: {error:?}"))?;
                world.pair.run(&scripts[at])
            })
        })
        .collect()
}

// === impl Second ===

impl Second {
    /// The prefix of the names of tests.
    fn suite(self) -> &'static str {
        match self {
            Self::Virtual | Self::Plain => "commands",
            Self::Demo => "demo_commands",
        }
    }

    /// The known differences.
    fn known(self) -> anyhow::Result<Vec<Known>> {
        let list = |name: &str| {
            let path = paths::workspace().join(FOLDER).join("known").join(name);
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Known::parse(&text)
        };
        Ok(match self {
            Self::Virtual if everywhere_kubeedge() => Known::over(list("kubeedge.txt")?, list("virtual.txt")?),
            Self::Virtual => list("virtual.txt")?,
            Self::Demo => Known::over(list("demo.txt")?, list("virtual.txt")?),
            Self::Plain => Vec::new(),
        })
    }
}

// === impl World ===

impl World {
    fn start(second: Second, scripts: &[Script]) -> anyhow::Result<Self> {
        let start = || {
            let is = |this| second == this;
            let virtual_cluster = is(Second::Virtual).then(|| VirtualCluster::start(scripts)).transpose()?;
            let demo = is(Second::Demo).then(|| DemoCluster::start(scripts)).transpose()?;
            anyhow::Ok((virtual_cluster, demo, is(Second::Plain).then(PlainHost::up).transpose()?))
        };
        let (plain, other) = std::thread::scope(|scope| {
            let plain = scope.spawn(PlainHost::up);
            let other = start();
            (plain.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
        });
        let (plain, (virtual_cluster, demo, other)) = (plain?, other?);
        let side = match (&virtual_cluster, &demo, &other) {
            (Some(virtual_cluster), ..) => virtual_cluster.side(),
            (_, Some(demo), _) => demo.side(),
            (.., Some(other)) => other.side("other"),
            (None, None, None) => bail!("no second side"),
        };
        let pair = Pair::new(plain.side("plain")?, side?, second.known()?);
        Ok(Self { pair, _virtual_cluster: virtual_cluster, _demo: demo, _plain: plain, _other: other })
    }
}
