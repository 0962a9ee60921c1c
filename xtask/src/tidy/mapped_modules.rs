//! The modules in the code map. In its section about crates, a name in backquotes is a module of the crate to which the last
//! link leads, or a crate.
//!
//! [`walkthrough`](super::walkthrough) checks the functions. With both rules, a renamed module or function cannot leave a
//! stale description behind.

use std::path::Path;

use crate::finding::Finding;
use crate::tree::Tree;

const CODE_MAP: &str = "ARCHITECTURE.md";

/// The heading of the section.
const SECTION: &str = "## Crates";

/// Checks every module that the code map names in a repository whose crates are `members`.
pub(crate) fn check(tree: &Tree, members: &[&str]) -> Vec<Finding> {
    let Some(map) = tree.text(Path::new(CODE_MAP)) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut source = None;
    let section = (1..).zip(map.lines()).skip_while(|(_, line)| *line != SECTION).skip(1);
    for (number, line) in section.take_while(|(_, line)| !line.starts_with("## ")) {
        source = if line.starts_with('#') { None } else { linked_source(line).or(source) };
        let Some(source) = source else { continue };
        let missing = modules(line).filter(|name| !members.contains(name) && !has_module(tree, source, name));
        findings.extend(missing.map(|name| {
            let problem = format!("{source} has no module `{name}`");
            Finding::new(Path::new(CODE_MAP), number, problem, "name the module that does this now")
        }));
    }
    findings
}

/// The folder `src` of the crate to which a line links: to its `lib.rs` or `main.rs`.
fn linked_source(line: &str) -> Option<&str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter_map(|target| target.strip_suffix("/lib.rs").or_else(|| target.strip_suffix("/main.rs"))).last()
}

/// The names in backquotes that look like modules; of a path, the last segment.
fn modules(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2).filter(|quoted| !quoted.is_empty());
    let paths = quoted.filter(|quoted| quoted.chars().all(|char| char.is_ascii_lowercase() || "_:".contains(char)));
    paths.filter_map(|path| path.rsplit("::").next())
}

fn has_module(tree: &Tree, source: &str, name: &str) -> bool {
    let files = tree.with_extension("rs").map(|(path, _)| path);
    let mut of_crate = files.filter(|path| path.starts_with(source));
    of_crate.any(|path| path.file_stem().is_some_and(|stem| stem == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(map: &str) -> Vec<String> {
        let files = [(CODE_MAP, map), ("a/src/lib.rs", ""), ("a/src/dial.rs", ""), ("a/src/exchange/turn.rs", "")];
        let tree: Tree = files.into_iter().map(|(path, text)| (path.into(), text.to_owned())).collect();
        check(&tree, &["rewrite"]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_map_names_modules_of_the_linked_crate() {
        let good =
            "## Crates\n\n### `a`\n\n[a/](a/src/lib.rs) uses `rewrite` and `a::dial`:\n\n- `turn` has a `Status`.\n";
        assert!(problems(good).is_empty());
        let stale = problems("## Crates\n[a/](a/src/lib.rs):\n- `dials` and `exchange::turns`\n\n## Next\n`gone`\n");
        assert!(stale.len() == 2 && stale[0].contains(":3: a/src has no module `dials`"), "{stale:?}");
        assert!(stale[1].contains("a/src has no module `turns`"), "{stale:?}");
    }
}
