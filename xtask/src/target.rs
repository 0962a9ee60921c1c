//! Where a link leads.

use std::path::{Component, Path, PathBuf};

/// The target of a link in a file of the repository, or of the book.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// Another site.
    Elsewhere,
    /// A file or a folder, and an anchor in it.
    Inside(PathBuf, Option<&'a str>),
    /// Above the root.
    Outside,
}

// === impl Target ===

impl<'a> Target<'a> {
    /// The target of a link in the file `from`. Paths are relative to the root.
    pub(crate) fn of(from: &Path, link: &'a str) -> Self {
        let has_scheme = link.split_once(':').is_some_and(|(scheme, _)| !scheme.contains(['/', '#', '.']));
        if has_scheme || link.starts_with("//") {
            return Self::Elsewhere;
        }
        let (path, anchor) = match link.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (link, None),
        };
        if path.is_empty() {
            return Self::Inside(from.to_owned(), anchor);
        }
        let mut to = from.parent().unwrap_or(Path::new("")).to_owned();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(part) => to.push(part),
                Component::CurDir => {}
                Component::ParentDir if to.pop() => {}
                _ => return Self::Outside,
            }
        }
        Self::Inside(to, anchor)
    }
}

/// The link in the file `from` that leads to `to`. Both are relative to the root.
pub(crate) fn relative(from: &Path, to: &Path) -> PathBuf {
    let folder: Vec<_> = from.parent().unwrap_or(Path::new("")).components().collect();
    let parts: Vec<_> = to.components().collect();
    let shared = folder.iter().zip(&parts).take_while(|(a, b)| a == b).count();
    let up = folder[shared..].iter().map(|_| Component::ParentDir);
    up.chain(parts[shared..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative_to_their_file() {
        let of = |link| Target::of(Path::new("docs/a/b.md"), link);
        let inside = |path, anchor| Target::Inside(PathBuf::from(path), anchor);
        assert_eq!(of("c.md#d"), inside("docs/a/c.md", Some("d")));
        assert_eq!(of("../../e/"), inside("e", None));
        assert_eq!(of("#f"), inside("docs/a/b.md", Some("f")));
        assert_eq!(of("../../../g"), Target::Outside);
        assert_eq!(of("/g"), Target::Outside);
        for link in ["https://example.com/x#y", "mailto:a@example.com", "//example.com"] {
            assert_eq!(of(link), Target::Elsewhere, "{link}");
        }
    }

    #[test]
    fn a_relative_link_leads_back() {
        for (from, to, link) in [
            ("a.md", "b/c.md", "b/c.md"),
            ("b/c.md", "a.md", "../a.md"),
            ("b/c.md", "b/d.md", "d.md"),
            ("b/c/d.md", "b/e/f.md", "../e/f.md"),
        ] {
            let found = relative(Path::new(from), Path::new(to));
            assert_eq!(found, Path::new(link));
            assert_eq!(Target::of(Path::new(from), link), Target::Inside(PathBuf::from(to), None));
        }
    }
}
