//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Every file by its path from the root, in order. It has its text if a task reads files of its kind.
#[derive(Debug)]
pub(crate) struct Tree {
    files: Vec<(PathBuf, String)>,
}

// === impl Tree ===

impl Tree {
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
                let entry = entry?;
                let path = entry.path();
                let name = entry.file_name();
                let name = name.to_string_lossy();
                // Build output and the files of the demo are not part of the repository. A link could lead out of it,
                // or form a cycle. Cargo's `target` is beside a manifest. A `target` elsewhere is a module.
                let is_built = name == "target" && folder.join("Cargo.toml").exists();
                if entry.file_type()?.is_dir() && !is_built && ![".atoll", ".git"].contains(&name.as_ref()) {
                    folders.push(path);
                } else if entry.file_type()?.is_file() {
                    let text = if is_read(&name) {
                        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?
                    } else {
                        String::new()
                    };
                    files.push((path.strip_prefix(root)?.to_owned(), text));
                }
            }
        }
        Ok(files.into_iter().collect())
    }

    /// The files with this extension.
    pub(crate) fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&Path, &str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.extension().is_some_and(|e| e == extension))
            .map(|(path, text)| (path.as_path(), text.as_str()))
    }

    pub(crate) fn text(&self, path: &Path) -> Option<&str> {
        let index = self.files.binary_search_by(|(other, _)| other.as_path().cmp(path)).ok()?;
        Some(&self.files[index].1)
    }

    /// Whether this is a file, or a folder with one somewhere in it.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.files.iter().any(|(other, _)| other.starts_with(path))
    }

    /// The line of a manifest, from 1, that names a dependency; 1 if it is written in another form.
    pub(crate) fn line_of_dependency(&self, manifest: &Path, name: &str) -> usize {
        let text = self.text(manifest).unwrap_or_default();
        let names = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
        text.lines().position(names).map_or(1, |index| index + 1)
    }
}

impl FromIterator<(PathBuf, String)> for Tree {
    fn from_iter<I: IntoIterator<Item = (PathBuf, String)>>(files: I) -> Self {
        let mut files: Vec<_> = files.into_iter().collect();
        files.sort();
        Self { files }
    }
}

fn is_read(name: &str) -> bool {
    name == "LICENSE"
        || name == "known-violations.txt"
        || [".md", ".rs", ".toml", ".yaml"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect()
    }

    #[test]
    fn files_and_their_folders_are_there() {
        let tree = tree(&[("b/c/d.md", "d"), ("b-c/x", ""), ("a.rs", "a")]);
        assert_eq!(tree.text(Path::new("b/c/d.md")), Some("d"));
        assert_eq!(tree.text(Path::new("b/c")), None);
        assert!(tree.has(Path::new("b/c")) && tree.has(Path::new("a.rs")) && !tree.has(Path::new("b/c/d")));
        assert_eq!(tree.with_extension("rs").collect::<Vec<_>>(), [(Path::new("a.rs"), "a")]);
    }

    #[test]
    fn a_dependency_is_found_in_its_manifest() {
        let text = "[dependencies]\nhyper-util = \"1\"\nhyper.workspace = true\n";
        let tree = tree(&[("a/Cargo.toml", text)]);
        let line = |name| tree.line_of_dependency(Path::new("a/Cargo.toml"), name);
        assert_eq!((line("hyper"), line("hyper-util"), line("h2")), (3, 2, 1));
    }

    #[test]
    fn this_file_is_in_this_repository() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let tree = Tree::read(root).unwrap();
        assert!(tree.text(Path::new("xtask/src/tree.rs")).unwrap().starts_with("//! The files"));
        assert!(!tree.has(Path::new("target")));
        assert!(tree.has(Path::new("bench/src/target/dial.rs")));
    }
}
