//! Clusters that should have the same outcomes as a reference.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use std::thread;

use anyhow::{Context, ensure};

use super::act::{Outcome, Stage};
use super::diff::unified;
use super::known::Known;
use super::normal;
use super::script::{Script, Step};
use super::side::Side;

/// A reference, and the clusters that should have the same outcomes.
#[derive(Debug)]
pub struct Comparison {
    reference: Side,
    others: Vec<Other>,
    // Scripts hold a read lock, or a write lock if no other script may run at the same time.
    alone: RwLock<()>,
}

/// A cluster that is compared with the reference.
#[derive(Debug)]
pub struct Other {
    /// The cluster.
    pub side: Side,
    /// Its known differences from the reference.
    pub known: Vec<Known>,
}

/// The outcomes of a script on one side, up to its failure.
struct Run {
    outcomes: Vec<Option<Outcome>>,
    failure: Option<anyhow::Error>,
}

// === impl Comparison ===

impl Comparison {
    /// Compares all others with the reference.
    pub fn new(reference: Side, others: Vec<Other>) -> Self {
        Self { reference, others, alone: RwLock::new(()) }
    }

    /// Runs a script on all sides concurrently. The error is a report: for each of the others, a diff for each command that differs
    /// without a known reason, the stale entries, and the step at which a side could not continue.
    pub fn run(&self, script: &Script) -> anyhow::Result<()> {
        // A failed test poisons the lock. It protects no data, so ignore this.
        let _reading;
        let _writing;
        if script.alone {
            _writing = self.alone.write().unwrap_or_else(PoisonError::into_inner);
        } else {
            _reading = self.alone.read().unwrap_or_else(PoisonError::into_inner);
        }
        let (reference, others) = thread::scope(|scope| {
            let others = self.others.iter();
            let others: Vec<_> =
                others.map(|other| scope.spawn(move || run_on(script, &other.side, &other.known))).collect();
            let reference = run_on(script, &self.reference, &[]);
            (reference, others.into_iter().map(joined).collect::<Vec<_>>())
        });
        write_transcript(script, &reference, &self.reference)?;
        let mut reports = failed_on(&self.reference, &reference);
        for (other, run) in self.others.iter().zip(&others) {
            write_transcript(script, run, &other.side)?;
            let report = self.report(script, &reference, other, run);
            if !report.is_empty() {
                let _ = write!(reports, "--- {}\n+++ {}\n{report}", self.reference.name(), other.side.name());
            }
        }
        ensure!(reports.is_empty(), reports);
        Ok(())
    }

    fn report(&self, script: &Script, reference: &Run, other: &Other, run: &Run) -> String {
        let mut report = String::new();
        for (step, (a, b)) in script.steps.iter().zip(reference.outcomes.iter().zip(&run.outcomes)) {
            let (Some(a), Some(b)) = (a, b) else { continue };
            let (a, b) = (normal::lines(a, step, &self.reference), normal::lines(b, step, &other.side));
            let diff = unified(&a, &b);
            let known = other.known.iter().find(|known| known.names(&script.name, step));
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
        report + &failed_on(&other.side, run)
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Why a side could not continue, as a line of the report.
fn failed_on(side: &Side, run: &Run) -> String {
    run.failure.as_ref().map(|failure| format!("on {}: {failure:#}\n", side.name())).unwrap_or_default()
}

/// Writes the compared text to the directory that `ATOLL_TRANSCRIPTS` names. The author of a script needs it, because equal
/// outputs can all be wrong.
fn write_transcript(script: &Script, run: &Run, side: &Side) -> anyhow::Result<()> {
    let Some(folder) = std::env::var_os("ATOLL_TRANSCRIPTS") else { return Ok(()) };
    let folder = Path::new(&folder).join(side.name());
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(format!("{}.txt", script.name)), transcript(script, run, side))?;
    Ok(())
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
