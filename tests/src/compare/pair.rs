//! Two clusters that should answer alike.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::RwLock;

use anyhow::{Context, bail};

use super::act::{Outcome, Stage};
use super::diff::unified;
use super::known::Known;
use super::normal;
use super::script::{Script, Step};
use super::side::Side;

/// Both sides, and what is known to differ.
#[derive(Debug)]
pub struct Pair {
    first: Side,
    second: Side,
    known: Vec<Known>,
    // Readers are scripts that do not mind others beside them.
    alone: RwLock<()>,
}

/// What a script came to on one side: an outcome for each of its steps, or as far as it came.
struct Played {
    outcomes: Vec<Option<Outcome>>,
    failure: Option<anyhow::Error>,
}

// === impl Pair ===

impl Pair {
    /// The second side is the one that `known` is about.
    pub fn new(first: Side, second: Side, known: Vec<Known>) -> Self {
        Self { first, second, known, alone: RwLock::new(()) }
    }

    /// Plays a script on both sides at once. The error is a report: a diff for each command that differs without a known
    /// reason, each known reason that is stale, and where a side could not go on.
    pub fn run(&self, script: &Script) -> anyhow::Result<()> {
        // A lock is poisoned by a failed trial; there is nothing in it that could be wrong.
        let _reading;
        let _writing;
        if script.alone {
            _writing = self.alone.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        } else {
            _reading = self.alone.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| play(script, &self.first, &[]));
            let second = play(script, &self.second, &self.known);
            (first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
        });
        self.keep(script, &first, &second)?;
        let report = self.report(script, &first, &second);
        if report.is_empty() {
            return Ok(());
        }
        bail!("--- {}\n+++ {}\n{report}", self.first.name(), self.second.name())
    }

    fn report(&self, script: &Script, first: &Played, second: &Played) -> String {
        let mut report = String::new();
        for (step, (a, b)) in script.steps.iter().zip(first.outcomes.iter().zip(&second.outcomes)) {
            let (Some(a), Some(b)) = (a, b) else { continue };
            let (a, b) = (normal::lines(a, step, &self.first), normal::lines(b, step, &self.second));
            let diff = unified(&a, &b);
            let known = self.known.iter().find(|known| known.names(&script.name, step));
            let verdict = match known {
                None if diff.is_empty() => continue,
                None => String::new(),
                Some(known) if diff.is_empty() => {
                    format!("  no longer differs; it was known to, because {}\n", known.reason)
                }
                Some(known) if known.fits(&a, &b) => continue,
                Some(known) => format!(
                    "  differs in another way than is known: shows {:?}, lacks {:?}\n",
                    known.shows, known.lacks
                ),
            };
            let _ = write!(report, "@@ {}.txt:{} @@ {}\n{verdict}{diff}", script.name, step.line, step.text);
        }
        for (side, played) in [(&self.first, first), (&self.second, second)] {
            if let Some(failure) = &played.failure {
                let _ = writeln!(report, "on {}: {failure:#}", side.name());
            }
        }
        report
    }

    /// Writes what was compared, where `ATOLL_TRANSCRIPTS` names a folder: two equal outputs may both be wrong, and
    /// somebody who writes a script wants to see them.
    fn keep(&self, script: &Script, first: &Played, second: &Played) -> anyhow::Result<()> {
        let Some(folder) = std::env::var_os("ATOLL_TRANSCRIPTS") else { return Ok(()) };
        for (side, played) in [(&self.first, first), (&self.second, second)] {
            let folder = Path::new(&folder).join(side.name());
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join(format!("{}.txt", script.name)), transcript(script, played, side))?;
        }
        Ok(())
    }
}

fn transcript(script: &Script, played: &Played, side: &Side) -> String {
    let mut text = String::new();
    for (step, outcome) in script.steps.iter().zip(&played.outcomes) {
        let _ = writeln!(text, "### {}", step.text);
        for line in outcome.iter().flat_map(|outcome| normal::lines(outcome, step, side)) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

fn play(script: &Script, side: &Side, known: &[Known]) -> Played {
    let is_left_out = |step: &Step| known.iter().any(|known| known.left_out && known.names(&script.name, step));
    let mut outcomes = Vec::new();
    let played = Stage::new(side).and_then(|mut stage| {
        prepare(script, &stage)?;
        let played = script.steps.iter().try_for_each(|step| {
            outcomes.push(if is_left_out(step) { None } else { act(&mut stage, script, step)? });
            Ok(())
        });
        // Even after a failure: the next script must find a clean cluster.
        played.and(clean(script, &stage))
    });
    Played { outcomes, failure: played.err() }
}

fn act(stage: &mut Stage<'_>, script: &Script, step: &Step) -> anyhow::Result<Option<Outcome>> {
    stage.act(&step.action).with_context(|| format!("{}.txt:{}: {}", script.name, step.line, step.text))
}

/// Makes the namespaces, with all that controllers put into a new one.
fn prepare(script: &Script, stage: &Stage<'_>) -> anyhow::Result<()> {
    let manifest = |namespace: &String| format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}");
    let manifests: Vec<_> = script.namespaces.iter().map(manifest).collect();
    if !manifests.is_empty() {
        stage.must(&["create", "-f", "-"], &manifests.join("\n---\n"))?;
    }
    for namespace in &script.namespaces {
        stage.must(&["wait", "--for=create", "-n", namespace, "sa/default", "cm/kube-root-ca.crt"], "")?;
    }
    Ok(())
}

fn clean(script: &Script, stage: &Stage<'_>) -> anyhow::Result<()> {
    if script.namespaces.is_empty() {
        return Ok(());
    }
    let words = ["delete", "namespace", "--ignore-not-found", "--timeout=55s"];
    let namespaces = script.namespaces.iter().map(String::as_str);
    stage.must(&words.into_iter().chain(namespaces).collect::<Vec<_>>(), "")
}
