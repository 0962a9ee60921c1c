//! The list of known differences, with their reasons.
//!
//! ```text
//! raw: kubectl get --raw /metrics
//!   because they are about the host and everybody on it
//!   shows forbidden
//! ```
//!
//! An entry names a script and one of its lines. If the script has that line several times, `raw 2:` selects the second
//! one. `shows` is a text that the output of the second side must contain. `lacks` is a text that only the output of
//! the first side must contain. An entry does not cover other differences. An entry whose step does not differ is
//! stale, and also a failure.
//!
//! With `left-out`, the second side skips the step, for example because the step would wait forever.
//!
//! `same` is for a list that has precedence over another one. It says that the step does not differ.
//!
//! Several entries can share a reason. It comes before them, without indentation, and applies up to the next such line:
//!
//! ```text
//! because it knows few kinds
//! raw: kubectl get --raw /apis/batch/v1
//!   shows NotFound
//! ```

use anyhow::{Context, bail, ensure};

use super::script::{Script, Step};

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The script's name.
    pub script: String,
    /// The line of the step.
    pub step: String,
    /// The occurrence, if the script has this line several times.
    pub time: Option<usize>,
    /// The reason.
    pub reason: String,
    /// Texts that the second side must show.
    pub shows: Vec<String>,
    /// Texts that only the first side must show.
    pub lacks: Vec<String>,
    /// Whether the second side skips the step.
    pub left_out: bool,
    /// Whether the step does not differ, although a list with lower precedence has an entry for it.
    pub same: bool,
}

// === impl Known ===

impl Known {
    /// Parses a list.
    pub fn parse(text: &str) -> anyhow::Result<Vec<Self>> {
        let mut list: Vec<Self> = Vec::new();
        let mut shared = "";
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            if let Some(directive) = line.strip_prefix("  ") {
                let entry = list.last_mut().with_context(|| format!("{line}: there is no entry before it"))?;
                match directive.split_once(' ') {
                    Some(("because", reason)) => reason.clone_into(&mut entry.reason),
                    Some(("shows", shows)) => entry.shows.push(shows.to_owned()),
                    Some(("lacks", lacks)) => entry.lacks.push(lacks.to_owned()),
                    None if directive == "left-out" => entry.left_out = true,
                    None if directive == "same" => entry.same = true,
                    _ => bail!("{line}: not `because`, `shows`, `lacks`, `left-out` or `same`"),
                }
            } else if let Some(reason) = line.strip_prefix("because ") {
                shared = reason;
            } else {
                let (script, step) = line.split_once(": ").with_context(|| format!("{line}: not SCRIPT: STEP"))?;
                let (script, time) = match script.split_once(' ') {
                    Some((script, time)) => {
                        (script, Some(time.parse().with_context(|| format!("{line}: not a number"))?))
                    }
                    None => (script, None),
                };
                let (script, step, reason) = (script.to_owned(), step.to_owned(), shared.to_owned());
                list.push(Self {
                    script,
                    step,
                    time,
                    reason,
                    shows: Vec::new(),
                    lacks: Vec::new(),
                    left_out: false,
                    same: false,
                });
            }
        }
        for entry in &list {
            ensure!(!entry.reason.is_empty(), "{}: {}: the reason is missing", entry.script, entry.step);
        }
        Ok(list)
    }

    /// Merges two lists. The entries of `upper` have precedence.
    #[must_use]
    pub fn over(upper: Vec<Self>, lower: Vec<Self>) -> Vec<Self> {
        let is_overridden = |entry: &Self| upper.iter().any(|one| one.is_same(entry));
        let rest: Vec<_> = lower.into_iter().filter(|entry| !is_overridden(entry)).collect();
        upper.into_iter().filter(|entry| !entry.same).chain(rest).collect()
    }

    /// Checks that each entry names exactly one step of these scripts, and that no two entries name the same step.
    pub fn check(list: &[Self], scripts: &[Script]) -> anyhow::Result<()> {
        for (at, entry) in list.iter().enumerate() {
            let steps = |script: &Script| script.steps.iter().filter(|step| entry.names(&script.name, step)).count();
            let found: usize = scripts.iter().map(steps).sum();
            ensure!(found == 1, "{}: {}: names {found} steps instead of one", entry.script, entry.step);
            let twice = list[..at].iter().any(|other| other.is_same(entry));
            ensure!(!twice, "{}: {}: there are two entries", entry.script, entry.step);
        }
        Ok(())
    }

    /// Whether the entry names this step.
    pub(super) fn names(&self, script: &str, step: &Step) -> bool {
        self.script == script && self.step == step.text && self.time.is_none_or(|time| time == step.time)
    }

    /// Whether the entry describes the difference of these outputs.
    pub(super) fn fits(&self, first: &[String], second: &[String]) -> bool {
        let has = |output: &[String], text: &String| output.iter().any(|line| line.contains(text));
        self.shows.iter().all(|text| has(second, text))
            && self.lacks.iter().all(|text| has(first, text) && !has(second, text))
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.script, &self.step, self.time) == (&other.script, &other.step, other.time)
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, Script};

    const LIST: &str =
        "# why\nraw: kubectl get --raw /metrics\n  because of the host\n  shows forbidden\n  shows raw\n";

    #[test]
    fn reasons_and_texts_are_parsed() {
        let list = Known::parse(LIST).unwrap();
        assert_eq!(list.len(), 1);
        assert_eq!((list[0].script.as_str(), list[0].step.as_str()), ("raw", "kubectl get --raw /metrics"));
        assert_eq!((list[0].reason.as_str(), list[0].shows.len()), ("of the host", 2));
        for bad in [
            "raw: kubectl get\n",
            "  because x\n",
            "raw: x\n  why x\n",
            "kubectl get\n  because x\n",
            "raw x: y\n  because x\n",
        ] {
            assert!(Known::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn entries_can_share_a_reason() {
        let text = format!(
            "because of all\n{LIST}raw: kubectl get x\n  shows y\nbecause of few\nraw: kubectl get z\n  left-out\n"
        );
        let list = Known::parse(&text).unwrap();
        let reasons: Vec<_> = list.iter().map(|entry| entry.reason.as_str()).collect();
        assert_eq!(reasons, ["of the host", "of all", "of few"]);
        assert_eq!(list.iter().map(|entry| entry.left_out).collect::<Vec<_>>(), [false, false, true]);
        let over =
            Known::over(list[..1].to_vec(), Known::parse("raw: kubectl get --raw /metrics\n  because x\n").unwrap());
        assert_eq!(over, list[..1]);
    }

    #[test]
    fn an_entry_names_one_step() {
        let list = Known::parse(LIST).unwrap();
        let script = |text| [Script::parse("raw", text).unwrap()];
        assert!(Known::check(&list, &script("kubectl get --raw /metrics\n")).is_ok());
        assert!(Known::check(&list, &script("kubectl get --raw /metrics/x\n")).is_err());
        assert!(Known::check(&list, &script("kubectl get --raw /metrics\nkubectl get --raw /metrics\n")).is_err());
        let second = Known::parse("raw 2: kubectl get --raw /metrics\n  because x\n").unwrap();
        assert!(Known::check(&second, &script("kubectl get --raw /metrics\nkubectl get --raw /metrics\n")).is_ok());
        assert!(Known::check(&second, &script("kubectl get --raw /metrics\n")).is_err());
        let twice = [&list[..], &list[..]].concat();
        assert!(Known::check(&twice, &script("kubectl get --raw /metrics\n")).is_err());
    }
}
