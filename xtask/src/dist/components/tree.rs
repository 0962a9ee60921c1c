//! The output of `cargo tree --prefix=depth --format={p}`.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context as _, ensure};

/// A package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) version: String,
    /// The packages that it uses, by their places in the list of all packages.
    pub(super) uses: BTreeSet<usize>,
}

/// Every package once, in the order of the output.
pub(super) fn parse(text: &str) -> anyhow::Result<Vec<Node>> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut places = HashMap::new();
    // The packages between the root and the current line.
    let mut path: Vec<usize> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (depth, name, version) = fields(line).with_context(|| format!("cargo tree printed {line:?}"))?;
        ensure!(depth <= path.len(), "cargo tree printed {line:?} without its parent");
        path.truncate(depth);
        let place = *places.entry((name, version)).or_insert_with(|| {
            nodes.push(Node { name: name.to_owned(), version: version.to_owned(), uses: BTreeSet::new() });
            nodes.len() - 1
        });
        if let Some(&parent) = path.last() {
            nodes[parent].uses.insert(place);
        }
        path.push(place);
    }
    Ok(nodes)
}

/// The depth, the name and the version. A path, or a mark that the dependencies are listed elsewhere, can follow.
fn fields(line: &str) -> Option<(usize, &str, &str)> {
    let name_at = line.find(|char: char| !char.is_ascii_digit())?;
    let mut words = line[name_at..].split(' ');
    Some((line[..name_at].parse().ok()?, words.next()?, words.next()?.strip_prefix('v')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(nodes: &[Node]) -> Vec<(&str, Vec<&str>)> {
        let name = |place: &usize| nodes[*place].name.as_str();
        nodes.iter().map(|node| (node.name.as_str(), node.uses.iter().map(name).collect())).collect()
    }

    #[test]
    fn a_package_is_listed_once_with_all_that_it_uses() {
        let text = "0server v0.1.0 (/a b/server)\n1http v1.5.0\n2bytes v1.12.1\n1ops v0.1.0 (/a b/ops)\n2http v1.5.0 (*)\n\n\
                    0atoll v0.1.0 (/a b/cli)\n1http v1.5.0 (*)\n1jemalloc-sys v0.7.1+5.3.1-0-g8\n";
        let nodes = parse(text).unwrap();
        assert_eq!(
            uses(&nodes),
            [
                ("server", vec!["http", "ops"]),
                ("http", vec!["bytes"]),
                ("bytes", vec![]),
                ("ops", vec!["http"]),
                ("atoll", vec!["http", "jemalloc-sys"]),
                ("jemalloc-sys", vec![]),
            ]
        );
        assert_eq!(nodes[5].version, "0.7.1+5.3.1-0-g8");
    }

    #[test]
    fn unknown_forms_are_errors() {
        for text in ["1http v1.5.0", "http v1.5.0", "0http", "0http 1.5.0", "0a v1\n2b v1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
