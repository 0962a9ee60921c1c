//! What was found, as compilers say it: `FILE:LINE:COLUMN: message`, and how many at the end.

use std::io::{self, Write};
use std::path::Path;

use ops::config::{ConfigErrors, Document, Located, Problems, examine};

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// What must be mended.
    pub(super) mistakes: Problems,
    /// What should be looked at.
    pub(super) warnings: Problems,
    /// What the configuration's own reader said, which has counted beyond what it tells.
    told: Vec<ConfigErrors>,
}

// === impl Report ===

impl Report {
    /// Takes over what a reader of configurations has said.
    pub(super) fn take(&mut self, errors: &ConfigErrors) {
        self.told.push(errors.clone());
    }

    /// Reads the document of this kind, and has it checked if it can be read at all.
    pub(super) fn examine<T: Document>(&mut self, file: &Path, check: impl FnOnce(&T, &mut Self)) {
        let (config, problems) = examine::<T>(file);
        if !problems.is_empty() {
            self.told.push(problems.into_errors(file));
        }
        if let Some(config) = config {
            check(&config, self);
        }
    }

    /// A mistake at a value, or in general.
    pub(super) fn mistake<T>(&mut self, value: &Located<T>, message: impl std::fmt::Display) {
        self.mistakes.at(value, message);
    }

    /// Something that will do, and should be looked at.
    pub(super) fn warn<T>(&mut self, value: &Located<T>, message: impl std::fmt::Display) {
        self.warnings.at(value, message);
    }

    /// Writes everything; returns whether there was no mistake.
    pub(super) fn write(self, file: &Path, out: &mut dyn Write) -> io::Result<bool> {
        let mut mistakes = 0;
        for errors in self.told.into_iter().chain([self.mistakes.into_errors(file)]) {
            mistakes += errors.problems().len();
            if !errors.problems().is_empty() {
                writeln!(out, "{errors}")?;
            }
        }
        let warnings = self.warnings.into_errors(file);
        for warning in warnings.problems() {
            let place = warning.place().map(|place| format!("{place}:")).unwrap_or_default();
            writeln!(out, "{}:{place} warning: {}", file.display(), warning.message())?;
        }
        let count = |count: usize, what: &str| match count {
            0 => format!("no {what}s"),
            1 => format!("1 {what}"),
            more => format!("{more} {what}s"),
        };
        let (warnings, found) = (count(warnings.problems().len(), "warning"), count(mistakes, "mistake"));
        writeln!(out, "{}: {found}, {warnings}", file.display())?;
        Ok(mistakes == 0)
    }
}
