//! The list of differences that have a reason.
//!
//! ```text
//! raw: kubectl get --raw /metrics
//!   because they are about the host and everybody on it
//!   shows forbidden
//! ```
//!
//! An entry names a script and one of its lines. `shows` is a text that the second side's output must have then: a
//! difference of another kind is not known. An entry whose commands do not differ is stale, which is a failure too.

use anyhow::{Context, bail, ensure};

use super::script::Script;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The script's name.
    pub script: String,
    /// The step, as it is written.
    pub step: String,
    /// Why it differs.
    pub reason: String,
    /// What the second side shows.
    pub shows: Vec<String>,
}

// === impl Known ===

impl Known {
    /// Parses a list.
    pub fn parse(text: &str) -> anyhow::Result<Vec<Self>> {
        let mut list: Vec<Self> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            if let Some(directive) = line.strip_prefix("  ") {
                let entry = list.last_mut().with_context(|| format!("{line}: before the first entry"))?;
                match directive.split_once(' ') {
                    Some(("because", reason)) => reason.clone_into(&mut entry.reason),
                    Some(("shows", shows)) => entry.shows.push(shows.to_owned()),
                    _ => bail!("{line}: neither `because` nor `shows`"),
                }
            } else {
                let (script, step) = line.split_once(": ").with_context(|| format!("{line}: not SCRIPT: STEP"))?;
                let (script, step) = (script.to_owned(), step.to_owned());
                list.push(Self { script, step, reason: String::new(), shows: Vec::new() });
            }
        }
        for entry in &list {
            ensure!(!entry.reason.is_empty(), "{}: {}: the reason is missing", entry.script, entry.step);
        }
        Ok(list)
    }

    /// Checks that each entry names exactly one step of these scripts, and no two the same.
    pub fn check(list: &[Self], scripts: &[Script]) -> anyhow::Result<()> {
        for (at, entry) in list.iter().enumerate() {
            let steps = scripts.iter().filter(|script| script.name == entry.script).flat_map(|script| &script.steps);
            let found = steps.filter(|step| step.text == entry.step).count();
            ensure!(found == 1, "{}: {}: names {found} steps instead of one", entry.script, entry.step);
            let twice = list[..at].iter().any(|other| (&other.script, &other.step) == (&entry.script, &entry.step));
            ensure!(!twice, "{}: {}: is there twice", entry.script, entry.step);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, Script};

    const LIST: &str =
        "# why\nraw: kubectl get --raw /metrics\n  because of the host\n  shows forbidden\n  shows raw\n";

    #[test]
    fn reads_reasons() {
        let list = Known::parse(LIST).unwrap();
        assert_eq!(list.len(), 1);
        assert_eq!((list[0].script.as_str(), list[0].step.as_str()), ("raw", "kubectl get --raw /metrics"));
        assert_eq!((list[0].reason.as_str(), list[0].shows.len()), ("of the host", 2));
        for bad in ["raw: kubectl get\n", "  because x\n", "raw: x\n  why x\n", "kubectl get\n  because x\n"] {
            assert!(Known::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn entries_name_one_step() {
        let list = Known::parse(LIST).unwrap();
        let script = |text| [Script::parse("raw", text).unwrap()];
        assert!(Known::check(&list, &script("kubectl get --raw /metrics\n")).is_ok());
        assert!(Known::check(&list, &script("kubectl get --raw /metrics/x\n")).is_err());
        assert!(Known::check(&list, &script("kubectl get --raw /metrics\nkubectl get --raw /metrics\n")).is_err());
        let twice = [&list[..], &list[..]].concat();
        assert!(Known::check(&twice, &script("kubectl get --raw /metrics\n")).is_err());
    }
}
