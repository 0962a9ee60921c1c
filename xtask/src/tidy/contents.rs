//! The table of contents of the book has each page in `docs/` once, and each figure there is in a page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::finding::Finding;
use crate::markdown::Page;
use crate::summary::{FILE, entries};
use crate::target::Target;
use crate::tree::Tree;

/// The folder of the pages.
const FOLDER: &str = "docs";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(summary) = tree.text(Path::new(FILE)) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut listed = BTreeSet::new();
    for entry in entries(summary) {
        if tree.text(&entry.page).is_none() || entry.page.extension().is_none_or(|extension| extension != "md") {
            let problem = format!("{} is not a page", entry.page.display());
            findings.push(Finding::new(Path::new(FILE), entry.line, problem, "name the file of a page"));
        }
        if !listed.insert(entry.page.clone()) {
            let problem = format!("{} is listed twice", entry.page.display());
            findings.push(Finding::new(Path::new(FILE), entry.line, problem, "list it once"));
        }
    }
    let in_folder = |path: &Path| path.starts_with(FOLDER) && path != Path::new(FILE);
    for (path, _) in tree.with_extension("md").filter(|(path, _)| in_folder(path) && !listed.contains(*path)) {
        findings.push(Finding::new(path, 1, format!("the page is not in {FILE}"), "list it there"));
    }
    let shown: BTreeSet<PathBuf> = listed.iter().flat_map(|page| linked(page, tree)).collect();
    for (path, _) in tree.with_extension("svg").filter(|(path, _)| in_folder(path) && !shown.contains(*path)) {
        findings.push(Finding::new(path, 1, "no page of the book shows the figure", "show it or remove it"));
    }
    findings
}

/// The files to which a page links.
fn linked(page: &Path, tree: &Tree) -> Vec<PathBuf> {
    let links = Page::read(tree.text(page).unwrap_or_default()).links;
    let inside = links.iter().filter_map(|link| match Target::of(page, &link.target) {
        Target::Inside(to, _) => Some(to),
        Target::Elsewhere | Target::Outside => None,
    });
    inside.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(files: &[(&str, &str)]) -> Vec<String> {
        let tree: Tree = files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect();
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_page_and_figure_is_in_the_book() {
        let summary = (FILE, "- [A](a.md)\n- [S](../S.md)\n");
        let files = [summary, ("docs/a.md", "![f](f.svg)"), ("docs/f.svg", ""), ("S.md", ""), ("README.md", "")];
        assert_eq!(lines(&files), [""; 0]);
        let missing = [summary, ("docs/a.md", ""), ("docs/b.md", ""), ("docs/f.svg", ""), ("S.md", "")];
        let found = lines(&missing);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("docs/b.md:1: the page is not in docs/SUMMARY.md"));
        assert!(found[1].starts_with("docs/f.svg:1: no page of the book shows"));
    }

    #[test]
    fn the_table_lists_pages_once() {
        let found = lines(&[(FILE, "- [A](a.md)\n- [A](a.md)\n- [F](f.txt)\n- [G](g.md)\n"), ("docs/a.md", "")]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains(":2: docs/a.md is listed twice"));
        assert!(found[1].contains(":3: docs/f.txt is not a page") && found[2].contains(":4: docs/g.md is not a page"));
    }
}
