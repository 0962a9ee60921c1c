//! Tables for people. [`fmt::Display`] writes them for a terminal, as `kubectl get` does.

use std::fmt::{self, Write as _};

/// In characters: longer cells are cut, because their content may come from a peer.
const MAX_CELL: usize = 300;

/// Rows of cells under a heading; each column is as wide as its widest cell.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    rows: Vec<Vec<String>>,
}

// === impl Columns ===

impl Columns {
    /// A table with this heading and no rows.
    pub fn new<'h>(heading: impl IntoIterator<Item = &'h str>) -> Self {
        Self { rows: vec![heading.into_iter().map(str::to_owned).collect()] }
    }

    /// Adds a row. Cells beyond the heading are shown without a heading.
    pub fn row<C: fmt::Display>(&mut self, cells: impl IntoIterator<Item = C>) {
        let clean = |cell: C| {
            let text = cell.to_string();
            text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(MAX_CELL).collect()
        };
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// The names of the columns. They can be empty.
    pub fn heading(&self) -> &[String] {
        self.rows.first().map_or(&[], Vec::as_slice)
    }

    /// The rows below the heading.
    pub fn rows(&self) -> impl Iterator<Item = &[String]> {
        self.rows.iter().skip(1).map(Vec::as_slice)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let widths: Vec<_> =
            (0..count).map(|column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                write!(line, "{cell:width$}   ").expect("writing to a String cannot fail");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_without_trailing_spaces() {
        let mut table = Columns::new(["NAME", "READY", ""]);
        assert!(table.is_empty());
        table.row(["ke-beijing", "yes", ""]);
        table.row(["b\n7", "no", "why\u{1b}[1m"]);
        assert_eq!(table.to_string(), "NAME         READY\nke-beijing   yes\nb 7          no      why [1m\n");
    }
}
