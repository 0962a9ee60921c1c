//! The pages of the book that list the keys of a configuration file. They are generated from the comments of the complete
//! examples in `configs/`, which the programs read in tests.
//!
//! Reading order: [`keys`] (the keys of an example, and what its comments say), [`prose`] (comments as Markdown).

mod keys;
mod prose;

use std::path::Path;
use std::process::ExitCode;

use crate::finding::{Finding, report};
use crate::text_file::{read, write};
use crate::tree::Tree;
use keys::{Example, Key};

/// A generated page.
struct Reference {
    program: &'static str,
    example: &'static str,
    page: &'static str,
}

/// All of them. Paths are relative to the root of the repository.
const REFERENCES: [Reference; 2] = [
    Reference {
        program: "proxy-server",
        example: "configs/proxy-server.yaml",
        page: "docs/proxy-server-configuration.md",
    },
    Reference {
        program: "proxy-agent",
        example: "configs/proxy-agent.yaml",
        page: "docs/proxy-agent-configuration.md",
    },
];

/// Writes all pages.
pub(crate) fn run(root: &Path) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    for reference in &REFERENCES {
        match reference.page(&read(&root.join(reference.example))?) {
            Ok(page) => write(&root.join(reference.page), &page)?,
            Err(finding) => findings.push(finding),
        }
    }
    Ok(report("reference", &findings, &format!("{} pages", REFERENCES.len() - findings.len())))
}

/// Finds pages that differ from what [`run`] would write.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    REFERENCES.iter().filter_map(|reference| reference.check(tree)).collect()
}

// === impl Reference ===

impl Reference {
    fn check(&self, tree: &Tree) -> Option<Finding> {
        let example = tree.text(Path::new(self.example))?;
        let written = match self.page(example) {
            Ok(written) => written,
            Err(finding) => return Some(finding),
        };
        let found = tree.text(Path::new(self.page)).unwrap_or_default();
        if found == written {
            return None;
        }
        let same = found.lines().zip(written.lines()).take_while(|(found, written)| found == written).count();
        let problem = format!("the page differs from {}", self.example);
        Some(Finding::new(Path::new(self.page), same + 1, problem, "run `cargo run -p xtask -- reference`"))
    }

    /// The text of the page.
    fn page(&self, example: &str) -> Result<String, Finding> {
        let parsed = Example::parse(example).map_err(|(line, problem)| {
            Finding::new(Path::new(self.example), line, problem, "write it as its neighbours")
        })?;
        let Self { program, example, .. } = self;
        let mut page = format!(
            "# Configuration of the {program}\n\n{}\n",
            prose::wrapped(
                &format!(
                    "This page lists all keys of the configuration of the {program}. It is generated from \
                     [{example}](../{example}), a complete example: `cargo run -p xtask -- reference` writes this page. \
                     `[]` stands for an item of a list. Below each key is its line in the example."
                ),
                "",
            ),
        );
        page.push_str(&prose::markdown(&parsed.preface));
        for key in &parsed.keys {
            write_key(key, &mut page);
        }
        Ok(page)
    }
}

/// Appends the section of a key.
fn write_key(key: &Key, page: &mut String) {
    let level = if key.is_nested() { "###" } else { "##" };
    let parts: Vec<String> = key.parts.iter().map(|part| prose::section(&part.comment, &part.lines)).collect();
    page.extend(["\n", level, " `", &key.path, "`\n\n", &parts.join("\n")]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str =
        "# A file.\n\n# Required.\nkind: A\n\n# B, see docs/b.md. Default: none.\nb:\n  # C.\n  c: 1\n";

    #[test]
    fn a_page_has_a_section_for_each_key() {
        let page = REFERENCES[0].page(EXAMPLE).unwrap();
        let (_, rest) = page.split_once("in the example.\n").unwrap();
        let expected = "\nA file.\n\n## `kind`\n\nRequired.\n\n```yaml\nkind: A\n```\n\n## `b`\n\nB, see [b.md](b.md). \
                        Default: none.\n\n### `b.c`\n\nC.\n\n```yaml\nc: 1\n```\n";
        assert_eq!(rest, expected);
    }

    #[test]
    fn a_page_that_differs_is_found() {
        let tree = |page: &str| -> Tree {
            let files = [(REFERENCES[0].example, EXAMPLE), (REFERENCES[0].page, page)];
            files.into_iter().map(|(path, text)| (path.into(), text.to_owned())).collect()
        };
        let page = REFERENCES[0].page(EXAMPLE).unwrap();
        assert_eq!(check(&tree(&page)), []);
        let found = check(&tree(&page.replace("kind: A", "kind: B")));
        let line = 1 + page.lines().position(|line| line == "kind: A").unwrap();
        assert_eq!(found.len(), 1);
        assert!(
            found[0].to_string().starts_with(&format!("docs/proxy-server-configuration.md:{line}: the page differs"))
        );
    }
}
