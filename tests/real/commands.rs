//! kubectl commands that must have the same outcome on a plain host and on virtual clusters.
//!
//! The commands are in `commands/*.txt`, one script for each area, in the syntax of `atoll_tests::compare`. There is
//! one test for each script. It runs on a plain host, and on two virtual clusters: one on a real host, and one of `atoll demo`. The
//! known differences, with their reasons, are in `commands/known/virtual.txt` (all virtual clusters),
//! `commands/known/demo.txt` (additional differences of `atoll demo`, because its host is dev-apiserver) and
//! `commands/known/kubeedge.txt` (hosts with KubeEdge). [`plain_host`], [`virtual_cluster`] and [`demo_cluster`] start
//! the sides when the first of these tests runs.

mod demo_cluster;
mod plain_host;
mod virtual_cluster;

use std::sync::{Arc, OnceLock};
use std::thread;

use anyhow::{Context, anyhow, bail};
use atoll_tests::compare::{Comparison, Known, Other, Script};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::paths;
use libtest_mimic::Trial;

use self::demo_cluster::DemoCluster;
use self::plain_host::PlainHost;
use self::virtual_cluster::VirtualCluster;

use crate::trial::trial;

/// The environment variable for the other sides: virtual clusters (`virtual`), or another plain host (`hosts`).
const OTHER_SIDES_VARIABLE: &str = "ATOLL_COMMANDS";

const FOLDER: &str = "tests/real/commands";

/// What a plain host is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A virtual cluster on a real host.
    Virtual,
    /// A virtual cluster of `atoll demo`, to find differences between dev-apiserver and Kubernetes.
    Demo,
    /// Another plain host, to find errors in the scripts and in the comparison.
    Plain,
}

/// A running cluster of a [`Kind`], with its processes.
enum Running {
    Virtual(Box<VirtualCluster>),
    Demo(DemoCluster),
    Plain(PlainHost),
}

/// All sides and their processes.
struct World {
    comparison: Comparison,
    _others: Vec<Running>,
    _plain: PlainHost,
}

pub(crate) fn trials() -> Vec<Trial> {
    let all = || {
        let scripts = Arc::new(Script::folder(&paths::workspace().join(FOLDER))?);
        let kinds: &[Kind] = match std::env::var(OTHER_SIDES_VARIABLE).as_deref() {
            Ok("hosts") => &[Kind::Plain],
            // dev-apiserver has the version of the newest Kubernetes, which differs from that of KubeEdge.
            Ok("virtual") | Err(_) if everywhere_kubeedge() => &[Kind::Virtual],
            Ok("virtual") | Err(_) => &[Kind::Virtual, Kind::Demo],
            Ok(other) => bail!("{OTHER_SIDES_VARIABLE}={other} is neither `virtual` nor `hosts`"),
        };
        for kind in kinds {
            Known::check(&kind.known()?, &scripts)?;
        }
        Ok(script_trials(kinds, &scripts))
    };
    all().unwrap_or_else(|error: anyhow::Error| vec![trial("commands::table", move || Err(error))])
}

fn script_trials(kinds: &'static [Kind], scripts: &Arc<Vec<Script>>) -> Vec<Trial> {
    let world = Arc::new(OnceLock::new());
    (0..scripts.len())
        .map(|at| {
            let (scripts, world) = (Arc::clone(scripts), Arc::clone(&world));
            trial(format!("commands::{}", scripts[at].name), move || {
                let world = world.get_or_init(|| World::start(kinds, &scripts));
                let world = world.as_ref().map_err(|error| anyhow!("cannot start the clusters: {error:?}"))?;
                world.comparison.run(&scripts[at])
            })
        })
        .collect()
}

// === impl Kind ===

impl Kind {
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

    fn start(self, scripts: &[Script]) -> anyhow::Result<(Other, Running)> {
        let running = match self {
            Self::Virtual => Running::Virtual(Box::new(VirtualCluster::start(scripts)?)),
            Self::Demo => Running::Demo(DemoCluster::start(scripts)?),
            Self::Plain => Running::Plain(PlainHost::up()?),
        };
        let side = match &running {
            Running::Virtual(cluster) => cluster.side(),
            Running::Demo(cluster) => cluster.side(),
            Running::Plain(host) => host.side("other"),
        };
        Ok((Other { side: side?, known: self.known()? }, running))
    }
}

// === impl World ===

impl World {
    fn start(kinds: &[Kind], scripts: &[Script]) -> anyhow::Result<Self> {
        let (plain, others) = thread::scope(|scope| {
            let others: Vec<_> = kinds.iter().map(|kind| scope.spawn(|| kind.start(scripts))).collect();
            let plain = PlainHost::up();
            let joined = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            (plain, others.into_iter().map(joined).collect::<anyhow::Result<Vec<_>>>())
        });
        let (plain, others) = (plain?, others?);
        let (others, running) = others.into_iter().unzip();
        Ok(Self { comparison: Comparison::new(plain.side("plain")?, others), _others: running, _plain: plain })
    }
}
