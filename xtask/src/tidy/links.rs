//! Relative links in Markdown lead to a file of the repository, or to a folder that contains one. An anchor is that of a
//! heading of a page.

use std::collections::BTreeMap;
use std::path::Path;

use crate::finding::Finding;
use crate::markdown::{Link, Page};
use crate::target::Target;
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let pages: BTreeMap<&Path, Page> = tree.with_extension("md").map(|(path, text)| (path, Page::read(text))).collect();
    let mut findings = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            let problem = problem(path, link, &pages, tree);
            findings.extend(problem.map(|problem| Finding::new(path, link.line, problem, "correct it")));
        }
    }
    findings
}

fn problem(from: &Path, link: &Link, pages: &BTreeMap<&Path, Page>, tree: &Tree) -> Option<String> {
    let (to, anchor) = match Target::of(from, &link.target) {
        Target::Elsewhere => return None,
        Target::Inside(to, anchor) if tree.has(&to) => (to, anchor?),
        Target::Inside(..) | Target::Outside => return Some(format!("the link to {} leads nowhere", link.target)),
    };
    let has_anchor = pages.get(to.as_path()).is_some_and(|page| page.anchors.contains(anchor));
    (!has_anchor).then(|| format!("{} has no heading for #{anchor}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(files: &[(&str, &str)]) -> Vec<String> {
        let tree: Tree = files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect();
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_lead_somewhere() {
        let found = lines(&[
            ("README.md", "# Up\n"),
            ("docs/a.md", "[up](../README.md), [web](https://example.com/x)\n[x](b.md) `[y](c.md)`"),
            ("docs/c/d.md", "[folder](../c) [out](../../../x)"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("docs/a.md:2: the link to b.md leads nowhere"));
        assert!(found[1].starts_with("docs/c/d.md:1: the link to ../../../x"));
    }

    #[test]
    fn anchors_are_those_of_headings() {
        let found = lines(&[
            ("a.md", "# A\n## The hub\n[here](#the-hub) [there](b.md#part) [gone](b.md#hub) [line](c.rs#L1)"),
            ("b.md", "# B\n### Part\n[gone](#b-1)"),
            ("c.rs", ""),
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("a.md:3: b.md has no heading for #hub"));
        assert!(found[1].starts_with("a.md:3: c.rs has no heading for #L1"));
        assert!(found[2].starts_with("b.md:3: b.md has no heading for #b-1"));
    }
}
