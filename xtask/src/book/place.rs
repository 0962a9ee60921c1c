//! Where something of the repository is in the book.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folder whose files have the same path in the book.
const PAGES: &str = "docs";
/// The page of a folder, in the repository and in the book.
const README: &str = "README.md";
const INDEX: &str = "index.md";
/// The folder of the book with pages that show other files.
const FILES: &str = "files";
/// The extensions of figures, which are copied as they are.
const FIGURES: [&str; 2] = ["svg", "png"];

/// The places of all files and folders. All paths are relative: to the root of the repository, or to the book.
pub(super) struct Places<'a> {
    root: &'a Path,
    pages: BTreeSet<PathBuf>,
}

// === impl Places ===

impl<'a> Places<'a> {
    /// The places in a book with these pages.
    pub(super) fn new(root: &'a Path, pages: Vec<PathBuf>) -> Self {
        Self { root, pages: pages.into_iter().collect() }
    }

    pub(super) fn pages(&self) -> impl Iterator<Item = &Path> {
        self.pages.iter().map(PathBuf::as_path)
    }

    /// Whether this is a page of the book, or the folder of one.
    pub(super) fn is_page(&self, path: &Path) -> bool {
        self.pages.contains(path) || self.pages.contains(&path.join(README))
    }

    /// The place of a file or folder.
    pub(super) fn of(&self, path: &Path) -> PathBuf {
        if self.pages.contains(&path.join(README)) {
            return self.of(&path.join(README));
        }
        let inner = path.strip_prefix(PAGES);
        if self.pages.contains(path) {
            let inner = inner.unwrap_or(path);
            return if inner.ends_with(README) { inner.with_file_name(INDEX) } else { inner.to_owned() };
        }
        if is_figure(path) {
            return inner.unwrap_or(path).to_owned();
        }
        let mut place = Path::new(FILES).join(path).into_os_string();
        place.push(if self.root.join(path).is_dir() { "/index.html" } else { ".html" });
        place.into()
    }
}

/// Whether a file is a figure.
pub(super) fn is_figure(path: &Path) -> bool {
    path.extension().is_some_and(|extension| FIGURES.iter().any(|figure| extension == *figure))
}
