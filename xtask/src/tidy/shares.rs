//! No crate has more than a fifth of the code.
//!
//! Every line of every Rust file in the package's folder counts, also comments, tests, examples and benchmarks: they
//! are read, built and moved together with the rest. Generated files do not count.

use std::path::{Path, PathBuf};

use super::graph::Graph;
use super::known::{Known, Violation};
use super::source::is_generated;
use crate::finding::Finding;
use crate::tree::Tree;

/// Of the lines of all packages, in percent.
const LARGEST: usize = 20;

/// A package that is too large.
pub(crate) struct Share {
    package: String,
    manifest: PathBuf,
    lines: usize,
    total: usize,
}

pub(crate) fn measure(graph: &Graph, tree: &Tree) -> Vec<Share> {
    let packages: Vec<_> = graph.members().map(|(_, package)| (package, lines_in(package.folder(), tree))).collect();
    let total = packages.iter().map(|(_, lines)| lines).sum();
    let mut shares = Vec::new();
    for (package, lines) in packages {
        // Compares numbers of lines, so that exactly a fifth is allowed.
        if lines * 100 > total * LARGEST {
            shares.push(Share { package: package.name.clone(), manifest: package.manifest.clone(), lines, total });
        }
    }
    shares
}

fn lines_in(folder: &Path, tree: &Tree) -> usize {
    let files = tree.with_extension("rs").filter(|(path, text)| path.starts_with(folder) && !is_generated(text));
    files.map(|(_, text)| text.lines().count()).sum()
}

// === impl Share ===

impl Share {
    pub(crate) fn violation(&self) -> Violation {
        Violation::Share { package: self.package.clone(), percent: (self.lines * 100).div_ceil(self.total) }
    }

    pub(crate) fn finding(&self, known: &Known) -> Finding {
        let Self { package, lines, total, .. } = self;
        let allowance = known.allowance(&self.violation());
        let tenths = lines * 1000 / total;
        let (percent, tenth) = (tenths / 10, tenths % 10);
        let problem = format!(
            "`{package}` has {percent}.{tenth} % of the code ({lines} of {total} lines); {LARGEST} % is the most{allowance}"
        );
        Finding::new(&self.manifest, 1, problem, "find the second idea in it and give it a crate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::graph::tests::workspace;

    /// Five crates: the last one has this number of lines, and the others ten each.
    fn measured(lines: usize, more: &[(&str, &str)]) -> Vec<String> {
        let graph = workspace(&[("a", ""), ("b", ""), ("c", ""), ("d", ""), ("e", "")]);
        let file = |name: &str, n| (PathBuf::from(format!("{name}/src/lib.rs")), "x\n".repeat(n));
        let files = [file("a", 10), file("b", 10), file("c", 10), file("d", 10), file("e", lines)];
        let more = more.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
        let tree = files.into_iter().chain(more).collect();
        let shares = measure(&graph, &tree);
        shares.iter().map(|share| format!("{} | {}", share.violation(), share.finding(&Known::default()))).collect()
    }

    #[test]
    fn a_fifth_is_allowed_and_one_line_more_is_not() {
        assert_eq!(measured(10, &[]), [""; 0]);
        let found = measured(11, &[]);
        assert!(
            found[0].starts_with("share e 22 | e/Cargo.toml:1: `e` has 21.5 % of the code (11 of 51 lines); 20 %"),
            "{found:?}"
        );
    }

    #[test]
    fn all_rust_files_of_a_package_count_but_generated_ones() {
        assert_eq!(measured(10, &[("e/tests/a.rs", "x\n"), ("e/examples/a.rs", "x\n")]).len(), 1);
        assert_eq!(
            measured(10, &[("e/src/a.rs", "// @generated\nx\n"), ("e/README.md", "x\n"), ("e-f/a.rs", "x\n")]).len(),
            0
        );
    }
}
