//! The files that a repository is expected to have.

use std::path::Path;

use crate::finding::Finding;
use crate::tree::Tree;

const CODE_MAP: &str = "ARCHITECTURE.md";
/// Lines of the code map: more than this is not a map.
const LONGEST_MAP: usize = 350;

const EXPECTED: &[(&str, &str)] = &[
    ("LICENSE", "put the text of the Apache License 2.0 there"),
    ("README.md", "say what this is and how to try it"),
    (CODE_MAP, "draw the map of the code"),
    ("CONTRIBUTING.md", "say how to build, test and commit"),
    ("SECURITY.md", "say who is trusted with what"),
    ("CHANGELOG.md", "say what changed for users"),
];

/// Checks a repository whose crates are `members`.
pub(crate) fn check(tree: &Tree, members: &[&str]) -> Vec<Finding> {
    let text = |name: &str| tree.text(Path::new(name));
    let mut findings = Vec::new();
    for (name, remedy) in EXPECTED {
        if text(name).is_none_or(|text| text.trim().is_empty()) {
            let path = Path::new(name);
            findings.push(Finding::new(path, 1, "missing or empty", *remedy));
        }
    }
    if let Some(map) = text(CODE_MAP) {
        findings.extend(check_map(map, members));
    }
    findings
}

fn check_map(map: &str, members: &[&str]) -> Vec<Finding> {
    let at = |line, problem, remedy| Finding::new(Path::new(CODE_MAP), line, problem, remedy);
    let mut findings = Vec::new();
    let n_lines = map.lines().count();
    if n_lines > LONGEST_MAP {
        let problem = format!("{n_lines} lines, and {LONGEST_MAP} is the most");
        findings.push(at(n_lines, problem, "move detail to the crates' own docs"));
    }
    for member in members {
        if !map.contains(&format!("`{member}`")) {
            let problem = format!("the crate `{member}` is not on the map");
            findings.push(at(1, problem, "say what it is and what it is not"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn repository(changes: &[(&str, &str)]) -> Tree {
        let expected = EXPECTED.iter().map(|(name, _)| (*name, "`proxy-server`"));
        let files: BTreeMap<&str, &str> = expected.chain(changes.iter().copied()).collect();
        let files = files.into_iter();
        files.map(|(path, text)| (path.into(), text.to_owned())).collect()
    }

    fn lines(changes: &[(&str, &str)]) -> Vec<String> {
        check(&repository(changes), &["proxy-server"]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_complete_repository_is_fine() {
        assert_eq!(lines(&[]), [""; 0]);
    }

    #[test]
    fn an_empty_licence_is_none() {
        assert!(lines(&[("LICENSE", "\n")])[0].starts_with("LICENSE:1: missing or empty; put"));
    }

    #[test]
    fn the_map_names_every_crate() {
        assert!(lines(&[("ARCHITECTURE.md", "proxy-server")])[0].contains("`proxy-server` is not on the map"));
        let long = "`proxy-server`\n".repeat(LONGEST_MAP + 1);
        assert!(lines(&[("ARCHITECTURE.md", &long)])[0].contains(&format!("{} lines", LONGEST_MAP + 1)));
    }
}
