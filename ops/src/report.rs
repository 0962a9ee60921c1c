//! A status for people: a sentence, tables and notes.
//!
//! [`fmt::Display`] writes it as text for a terminal, and [`html`](crate::html) as a page for a browser.

use std::fmt;

use crate::columns::Columns;

/// The status of a process, in any form.
#[derive(Clone, Debug)]
pub struct Report {
    summary: String,
    tables: Vec<Table>,
    notes: Vec<String>,
}

/// A table with a name.
#[derive(Clone, Debug)]
pub struct Table {
    /// The name. The text form leaves it out, because the heading of its first column says the same.
    pub caption: &'static str,
    /// The rows.
    pub columns: Columns,
}

// === impl Report ===

impl Report {
    /// A report that has only this sentence.
    pub fn new(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), tables: Vec::new(), notes: Vec::new() }
    }

    /// Adds a table, unless it has no rows.
    #[must_use]
    pub fn with_table(mut self, caption: &'static str, columns: Columns) -> Self {
        if !columns.is_empty() {
            self.tables.push(Table { caption, columns });
        }
        self
    }

    /// The sentence.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// The tables, which all have rows.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The sentences below the tables.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds a sentence below the tables.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary)?;
        for table in &self.tables {
            write!(f, "\n{}", table.columns)?;
        }
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_a_blank_line_between_its_parts() {
        let mut clusters = Columns::new(["CLUSTER", "READY"]);
        clusters.row(["ke-beijing", "yes"]);
        let report = Report::new("all is well")
            .with_table("Clusters", clusters)
            .with_table("Tunnels", Columns::new(["TUNNEL"]))
            .with_note("Nothing else.");
        assert_eq!(report.to_string(), "all is well\n\nCLUSTER      READY\nke-beijing   yes\n\nNothing else.\n");
    }
}
