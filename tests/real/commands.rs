//! The table of kubectl commands: on a plain host and on a virtual cluster they must come to the same.
//!
//! The table is `commands/*.txt`, one script for each area in the notation of `atoll_tests::compare`, and one trial for
//! each script. `commands/differences.txt` lists what may differ on a virtual cluster, with the reason. [`plain`] and
//! [`slice`] start the two sides; nothing is started unless one of these trials runs.

mod plain;
mod slice;

use std::sync::{Arc, OnceLock};

use anyhow::{Context, anyhow, bail};
use atoll_tests::compare::{Known, Pair, Script};
use atoll_tests::paths;
use libtest_mimic::Trial;

use self::plain::Plain;
use self::slice::Slice;

/// The switch: which second side the plain host is compared with; a virtual cluster, if it is not set.
const SWITCH: &str = "ATOLL_COMMANDS";

/// What a plain host is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Second {
    /// A virtual cluster: the purpose of all this.
    Slice,
    /// Another plain host: any difference is a mistake of the table or of the comparison.
    Plain,
}

/// Both sides, and what keeps them alive. Fields are dropped in order: processes before the hosts they use.
struct World {
    pair: Pair,
    _slice: Option<Slice>,
    _plain: Plain,
    _other: Option<Plain>,
}

pub(crate) fn trials() -> Vec<Trial> {
    match table() {
        Ok((second, scripts)) => table_trials(second, scripts),
        Err(error) => vec![Trial::test("commands::table", move || Err(format!("{error:?}").into()))],
    }
}

fn table_trials(second: Second, scripts: Vec<Script>) -> Vec<Trial> {
    let scripts = Arc::new(scripts);
    let world = Arc::new(OnceLock::new());
    (0..scripts.len())
        .map(|at| {
            let (scripts, world) = (Arc::clone(&scripts), Arc::clone(&world));
            Trial::test(format!("commands::{}", scripts[at].name), move || {
                let world = world.get_or_init(|| World::start(second, &scripts));
                let run = || {
                    let world = world.as_ref().map_err(|error| anyhow!("the two sides did not start: {error:?}"))?;
                    world.pair.run(&scripts[at])
                };
                run().map_err(|error| format!("{error:?}").into())
            })
        })
        .collect()
}

/// The second side that is asked for, and the scripts in the order of their names.
fn table() -> anyhow::Result<(Second, Vec<Script>)> {
    let second = match std::env::var(SWITCH).as_deref() {
        Ok("hosts") => Second::Plain,
        Ok("virtual") | Err(_) => Second::Slice,
        Ok(other) => bail!("{SWITCH}={other} is neither `virtual` nor `hosts`"),
    };
    let scripts = Script::folder(&paths::workspace().join(FOLDER), DIFFERENCES)?;
    Known::check(&known()?, &scripts)?;
    Ok((second, scripts))
}

const FOLDER: &str = "tests/real/commands";
const DIFFERENCES: &str = "differences.txt";

fn known() -> anyhow::Result<Vec<Known>> {
    let path = paths::workspace().join(FOLDER).join(DIFFERENCES);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Known::parse(&text)
}

// === impl World ===

impl World {
    fn start(second: Second, scripts: &[Script]) -> anyhow::Result<Self> {
        let start = || match second {
            Second::Slice => Ok((Some(Slice::start(scripts)?), None)),
            Second::Plain => anyhow::Ok((None, Some(Plain::up()?))),
        };
        let (plain, other) = std::thread::scope(|scope| {
            let plain = scope.spawn(Plain::up);
            let other = start();
            (plain.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
        });
        let (plain, (slice, other)) = (plain?, other?);
        let first = plain.side("plain")?;
        let pair = match (&slice, &other) {
            (Some(slice), _) => Pair::new(first, slice.side()?, known()?),
            (None, Some(other)) => Pair::new(first, other.side("other")?, Vec::new()),
            (None, None) => bail!("no second side"),
        };
        Ok(Self { pair, _slice: slice, _plain: plain, _other: other })
    }
}
