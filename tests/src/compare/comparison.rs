//! Two clusters that should have the same outcomes.

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

/// Both sides, and the known differences.
#[derive(Debug)]
pub struct Pair {
    first: Side,
    second: Side,
    known: Vec<Known>,
    // Scripts hold a read lock, or a write lock if no other script may run at the same time.
    alone: RwLock<()>,
}

/// The outcomes of a script on one side, up to its failure.
struct Run {
    outcomes: Vec<Option<Outcome>>,
    failure: Option<anyhow::Error>,
}

// === impl Pair ===

impl Pair {
    /// `known` has the differences of the second side.
    pub fn new(first: Side, second: Side, known: Vec<Known>) -> Self {
        Self { first, second, known, alone: RwLock::new(()) }
    }

    /// Runs a script on both sides concurrently. The error is a report: a diff for each command that differs without a
    /// known reason, the stale entries, and the step at which a side could not continue.
    pub fn run(&self, script: &Script) -> anyhow::Result<()> {
        // A failed test poisons the lock. It protects no data, so ignore this.
        let _reading;
        let _writing;
        if script.alone {
            _writing = self.alone.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        } else {
            _reading = self.alone.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| run_on(script, &self.first, &[]));
            let second = run_on(script, &self.second, &self.known);
            (first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
        });
        self.write_transcripts(script, &first, &second)?;
        let report = self.report(script, &first, &second);
        if report.is_empty() {
            return Ok(());
        }
        bail!("--- {}\n+++ {}\n{report}", self.first.name(), self.second.name())
    }

    fn report(&self, script: &Script, first: &Run, second: &Run) -> String {
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
                    format!("  does not differ; there is a stale entry with the reason: {}\n", known.reason)
                }
                Some(known) if known.fits(&a, &b) => continue,
                Some(known) => format!(
                    "  differs in another way than the entry says: shows {:?}, lacks {:?}\n",
                    known.shows, known.lacks
                ),
            };
            let _ = write!(report, "@@ {}.txt:{} @@ {}\n{verdict}{diff}", script.name, step.line, step.text);
        }
        for (side, run) in [(&self.first, first), (&self.second, second)] {
            if let Some(failure) = &run.failure {
                let _ = writeln!(report, "on {}: {failure:#}", side.name());
            }
        }
        report
    }

    /// Writes the compared texts to the directory that `ATOLL_TRANSCRIPTS` names. The author of a script needs them,
    /// because two equal outputs can both be wrong.
    fn write_transcripts(&self, script: &Script, first: &Run, second: &Run) -> anyhow::Result<()> {
        let Some(folder) = std::env::var_os("ATOLL_TRANSCRIPTS") else { return Ok(()) };
        for (side, run) in [(&self.first, first), (&self.second, second)] {
            let folder = Path::new(&folder).join(side.name());
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join(format!("{}.txt", script.name)), transcript(script, run, side))?;
        }
        Ok(())
    }
}

fn transcript(script: &Script, run: &Run, side: &Side) -> String {
    let mut text = String::new();
    for (step, outcome) in script.steps.iter().zip(&run.outcomes) {
        let _ = writeln!(text, "### {}", step.text);
        for line in outcome.iter().flat_map(|outcome| normal::lines(outcome, step, side)) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

fn run_on(script: &Script, side: &Side, known: &[Known]) -> Run {
    let is_skipped = |step: &Step| known.iter().any(|known| known.left_out && known.names(&script.name, step));
    let mut outcomes = Vec::new();
    let result = Stage::new(side).and_then(|mut stage| {
        prepare(script, &stage)?;
        let result = script.steps.iter().try_for_each(|step| {
            outcomes.push(if is_skipped(step) { None } else { act(&mut stage, script, step)? });
            Ok(())
        });
        // Also after a failure, because the next script needs a clean cluster.
        result.and(clean(script, &stage))
    });
    Run { outcomes, failure: result.err() }
}

fn act(stage: &mut Stage<'_>, script: &Script, step: &Step) -> anyhow::Result<Option<Outcome>> {
    stage.act(&step.action).with_context(|| format!("{}.txt:{}: {}", script.name, step.line, step.text))
}

/// Creates the namespaces, and waits for the objects that controllers create in them.
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
