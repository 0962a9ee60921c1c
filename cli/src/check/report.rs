//! The report of a check: lines in the format of compilers, `FILE:LINE:COLUMN: message`, and totals at the end; or a
//! JSON document.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use ops::config::{ConfigErrors, Document, Located, Problem, Problems, examine};
use serde_json::{Value, json};

use super::weakness::{Check, Weakness};

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Problems that must be fixed.
    pub(super) mistakes: Problems,
    /// Problems that should be reviewed.
    pub(super) warnings: Problems,
    /// Weaknesses of the host. `None` if the check did not include them.
    weaknesses: Option<Vec<Weakness>>,
    /// The errors of the configuration's parser. Each also has a number of errors that it does not list.
    parse_errors: Vec<ConfigErrors>,
}

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One line for each finding, and a second line with advice for a weakness
    #[default]
    Text,
    /// A JSON document
    Json,
}

/// The numbers of findings.
struct Counts {
    mistakes: usize,
    warnings: usize,
    /// `None` if the check did not include them.
    weaknesses: Option<usize>,
    accepted: usize,
}

// === impl Report ===

impl Report {
    /// Adds errors of the configuration's parser.
    pub(super) fn add_errors(&mut self, errors: &ConfigErrors) {
        self.parse_errors.push(errors.clone());
    }

    /// Parses the document of this kind, and checks it if there is one.
    pub(super) fn examine<T: Document>(&mut self, file: &Path, check: impl FnOnce(&T, &mut Self)) {
        let (config, problems) = examine::<T>(file);
        if !problems.is_empty() {
            self.parse_errors.push(problems.into_errors(file));
        }
        if let Some(config) = config {
            check(&config, self);
        }
    }

    /// Adds a mistake at a value.
    pub(super) fn mistake<T>(&mut self, value: &Located<T>, message: impl fmt::Display) {
        self.mistakes.at(value, message);
    }

    /// Adds a warning at a value: it works, but the operator should review it.
    pub(super) fn warn<T>(&mut self, value: &Located<T>, message: impl fmt::Display) {
        self.warnings.at(value, message);
    }

    /// Includes weaknesses of the host in the report.
    pub(super) fn include_weaknesses(&mut self) {
        self.weaknesses.get_or_insert_default();
    }

    /// Whether the report includes weaknesses of the host.
    pub(super) fn includes_weaknesses(&self) -> bool {
        self.weaknesses.is_some()
    }

    /// Adds weaknesses of the host.
    pub(super) fn add_weaknesses(&mut self, weaknesses: impl IntoIterator<Item = Weakness>) {
        self.weaknesses.get_or_insert_default().extend(weaknesses);
    }

    /// Writes all findings except `accepted` weaknesses. Returns whether there was neither a mistake nor a weakness.
    pub(super) fn write(
        self,
        file: &Path,
        format: Format,
        accepted: &[Check],
        out: &mut dyn Write,
    ) -> io::Result<bool> {
        let includes_weaknesses = self.weaknesses.is_some();
        let (accepted, mut weaknesses): (Vec<_>, Vec<_>) =
            self.weaknesses.into_iter().flatten().partition(|weakness| accepted.contains(&weakness.check));
        weaknesses.sort_by_key(|weakness| (weakness.problem.location().is_none(), weakness.problem.location()));
        let mistakes: Vec<_> = self.parse_errors.into_iter().chain([self.mistakes.into_errors(file)]).collect();
        let warnings = self.warnings.into_errors(file);
        let counts = Counts {
            mistakes: mistakes.iter().map(|errors| errors.problems().len()).sum(),
            warnings: warnings.problems().len(),
            weaknesses: includes_weaknesses.then_some(weaknesses.len()),
            accepted: accepted.len(),
        };
        match format {
            Format::Json => {
                let mistakes = mistakes.iter().flat_map(ConfigErrors::problems).map(|one| item("mistake", one));
                let warnings = warnings.problems().iter().map(|one| item("warning", one));
                let items: Vec<_> = mistakes.chain(warnings).chain(weaknesses.iter().map(weakness_item)).collect();
                writeln!(out, "{:#}", document(file, &counts, &items))?;
            }
            Format::Text => {
                for errors in mistakes.iter().filter(|errors| !errors.problems().is_empty()) {
                    writeln!(out, "{errors}")?;
                }
                for warning in warnings.problems() {
                    writeln!(out, "{} warning: {}", location(file, warning), warning.message())?;
                }
                for Weakness { check, problem, advice } in &weaknesses {
                    writeln!(out, "{} weakness: {} [{check}]", location(file, problem), problem.message())?;
                    writeln!(out, "    {advice}")?;
                }
                writeln!(out, "{}: {counts}", file.display())?;
            }
        }
        Ok(counts.mistakes == 0 && counts.weaknesses.unwrap_or(0) == 0)
    }
}

/// `FILE:LINE:COLUMN:`, or without line and column if they are unknown.
fn location(file: &Path, problem: &Problem) -> String {
    let location = problem.location().map(|location| format!("{location}:")).unwrap_or_default();
    format!("{}:{location}", file.display())
}

fn document(file: &Path, counts: &Counts, items: &[Value]) -> Value {
    json!({
        "apiVersion": "atoll.dev/v1alpha1", "kind": "CheckReport",
        "file": file.display().to_string(),
        "mistakes": counts.mistakes, "warnings": counts.warnings,
        "weaknesses": counts.weaknesses, "accepted": counts.accepted,
        "items": items,
    })
}

fn item(severity: &str, problem: &Problem) -> Value {
    let mut item = json!({"severity": severity, "message": problem.message()});
    if let Some(location) = problem.location() {
        item["line"] = location.line().into();
        item["column"] = location.column().into();
    }
    item
}

fn weakness_item(weakness: &Weakness) -> Value {
    let mut item = item("weakness", &weakness.problem);
    item["check"] = weakness.check.to_string().into();
    item["advice"] = weakness.advice.clone().into();
    item
}

// === impl Counts ===

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: usize, one: &str, many: &str| match count {
            0 => format!("no {many}"),
            1 => format!("1 {one}"),
            more => format!("{more} {many}"),
        };
        let (mistakes, warnings) =
            (count(self.mistakes, "mistake", "mistakes"), count(self.warnings, "warning", "warnings"));
        write!(f, "{mistakes}, {warnings}")?;
        if let Some(weaknesses) = self.weaknesses {
            write!(f, ", {}", count(weaknesses, "weakness", "weaknesses"))?;
        }
        match self.accepted {
            0 => Ok(()),
            accepted => write!(f, ", {accepted} accepted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format, accepted: &[Check], includes_weaknesses: bool) -> (String, bool) {
        let mut report = Report::default();
        report.warn(&Located::new((), ops::config::Location::new(3, 1)), "look here");
        if includes_weaknesses {
            report.include_weaknesses();
            report.add_weaknesses([
                Weakness::at(Check::FreeVolume, None, "host: a", "b"),
                Weakness::at(Check::NodeLabel, ops::config::Location::new(4, 2), "c", "d"),
            ]);
        }
        let mut out = Vec::new();
        let good = report.write(Path::new("c.yaml"), format, accepted, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), good)
    }

    #[test]
    fn weaknesses_have_advice() {
        let lines = "c.yaml:3:1: warning: look here\nc.yaml:4:2: weakness: c [node-label]\n    d\n\
                     c.yaml: weakness: host: a [free-volume]\n    b\nc.yaml: no mistakes, 1 warning, 2 weaknesses\n";
        assert_eq!(written(Format::Text, &[], true), (lines.to_owned(), false));
        let lines = "c.yaml:3:1: warning: look here\nc.yaml: no mistakes, 1 warning, no weaknesses, 2 accepted\n";
        assert_eq!(written(Format::Text, &[Check::NodeLabel, Check::FreeVolume], true), (lines.to_owned(), true));
        let lines = "c.yaml:3:1: warning: look here\nc.yaml: no mistakes, 1 warning\n";
        assert_eq!(written(Format::Text, &[], false), (lines.to_owned(), true));
    }

    #[test]
    fn json_has_the_same_findings() {
        let (text, good) = written(Format::Json, &[Check::FreeVolume], true);
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(!good && document["kind"] == "CheckReport", "{text}");
        assert_eq!(
            document["items"],
            json!([
                {"severity": "warning", "line": 3, "column": 1, "message": "look here"},
                {"severity": "weakness", "check": "node-label", "line": 4, "column": 2, "message": "c", "advice": "d"},
            ])
        );
        assert_eq!([&document["weaknesses"], &document["accepted"], &document["mistakes"]], [1, 1, 0]);
        let (text, _) = written(Format::Json, &[], false);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["weaknesses"], Value::Null);
    }
}
