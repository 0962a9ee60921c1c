//! The table of contents of the book: `docs/SUMMARY.md`, in the format of mdBook.

use std::path::{Path, PathBuf};

use crate::markdown::Page;
use crate::target::Target;

/// Relative to the root of the repository.
pub(crate) const FILE: &str = "docs/SUMMARY.md";

/// A page of the book.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The line of the table of contents, from 1.
    pub(crate) line: usize,
    /// Relative to the root of the repository.
    pub(crate) page: PathBuf,
}

/// The pages of the book, in their order.
pub(crate) fn entries(text: &str) -> Vec<Entry> {
    let links = Page::read(text).links;
    let entries = links.into_iter().filter_map(|link| match Target::of(Path::new(FILE), &link.target) {
        Target::Inside(page, _) => Some(Entry { line: link.line, page }),
        Target::Elsewhere | Target::Outside => None,
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_relative_to_the_repository() {
        let found = entries("# Summary\n\n[A](README.md)\n\n# Part\n\n- [B](b.md)\n  - [C](../C.md)\n");
        let expected = [(3, "docs/README.md"), (7, "docs/b.md"), (8, "C.md")];
        assert_eq!(found, expected.map(|(line, page)| Entry { line, page: page.into() }));
    }
}
