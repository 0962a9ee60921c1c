//! The table of kubectl commands: on a plain host and on a virtual cluster they must come to the same.
//!
//! The table is `commands/*.txt`, one script for each area in the notation of `atoll_tests::compare`, and one trial for
//! each script and each kind of virtual cluster: one of a real host, and one of `atoll demo`.
//! `commands/known/virtual.txt` lists what may differ on a virtual cluster, and `commands/known/demo.txt` what differs
//! besides because the demonstration's host is a toy, and `commands/known/kubeedge.txt` what does on hosts as KubeEdge has
//! them, each with the reason. [`plain`], [`slice`] and [`toy`] start the
//! sides; nothing is started unless one of these trials runs.

mod plain;
mod slice;
mod toy;

use std::sync::{Arc, OnceLock};

use anyhow::{Context, anyhow, bail};
use atoll_tests::compare::{Known, Pair, Script};
use atoll_tests::host::everywhere_kubeedge;
use atoll_tests::paths;
use libtest_mimic::Trial;

use self::plain::Plain;
use self::slice::Slice;
use self::toy::Toy;

use crate::trial::trial;

/// The switch: a virtual cluster is compared, or, with `hosts`, another plain host.
const SWITCH: &str = "ATOLL_COMMANDS";

const FOLDER: &str = "tests/real/commands";

/// What a plain host is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Second {
    /// A virtual cluster: the purpose of all this.
    Slice,
    /// A virtual cluster of `atoll demo`: it shows what the toy below it does otherwise than Kubernetes.
    Toy,
    /// Another plain host: any difference is a mistake of the table or of the comparison.
    Plain,
}

/// Both sides, and what keeps them alive. Fields are dropped in order: processes before the hosts they use.
struct World {
    pair: Pair,
    _slice: Option<Slice>,
    _toy: Option<Toy>,
    _plain: Plain,
    _other: Option<Plain>,
}

pub(crate) fn trials() -> Vec<Trial> {
    let all = || {
        let scripts = Arc::new(Script::folder(&paths::workspace().join(FOLDER))?);
        let seconds: &[Second] = match std::env::var(SWITCH).as_deref() {
            Ok("hosts") => &[Second::Plain],
            // The toy is as new as the newest Kubernetes.
            Ok("virtual") | Err(_) if everywhere_kubeedge() => &[Second::Slice],
            Ok("virtual") | Err(_) => &[Second::Slice, Second::Toy],
            Ok(other) => bail!("{SWITCH}={other} is neither `virtual` nor `hosts`"),
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
                let world = world.as_ref().map_err(|error| anyhow!("the two sides did not start: {error:?}"))?;
                world.pair.run(&scripts[at])
            })
        })
        .collect()
}

// === impl Second ===

impl Second {
    /// How the trials are named.
    fn suite(self) -> &'static str {
        match self {
            Self::Slice | Self::Plain => "commands",
            Self::Toy => "demo_commands",
        }
    }

    /// What may differ.
    fn known(self) -> anyhow::Result<Vec<Known>> {
        let list = |name: &str| {
            let path = paths::workspace().join(FOLDER).join("known").join(name);
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Known::parse(&text)
        };
        Ok(match self {
            Self::Slice if everywhere_kubeedge() => Known::over(list("kubeedge.txt")?, list("virtual.txt")?),
            Self::Slice => list("virtual.txt")?,
            Self::Toy => Known::over(list("demo.txt")?, list("virtual.txt")?),
            Self::Plain => Vec::new(),
        })
    }
}

// === impl World ===

impl World {
    fn start(second: Second, scripts: &[Script]) -> anyhow::Result<Self> {
        let start = || {
            let is = |this| second == this;
            let slice = is(Second::Slice).then(|| Slice::start(scripts)).transpose()?;
            let toy = is(Second::Toy).then(|| Toy::start(scripts)).transpose()?;
            anyhow::Ok((slice, toy, is(Second::Plain).then(Plain::up).transpose()?))
        };
        let (plain, other) = std::thread::scope(|scope| {
            let plain = scope.spawn(Plain::up);
            let other = start();
            (plain.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
        });
        let (plain, (slice, toy, other)) = (plain?, other?);
        let side = match (&slice, &toy, &other) {
            (Some(slice), ..) => slice.side(),
            (_, Some(toy), _) => toy.side(),
            (.., Some(other)) => other.side("other"),
            (None, None, None) => bail!("no second side"),
        };
        let pair = Pair::new(plain.side("plain")?, side?, second.known()?);
        Ok(Self { pair, _slice: slice, _toy: toy, _plain: plain, _other: other })
    }
}
