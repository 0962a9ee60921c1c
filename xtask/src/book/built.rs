//! The links of a built book: each leads to a file of the book, and its anchor is in that file.
//!
//! This reads the HTML that mdBook and [`files`](super::files) write. It knows tags, attributes and comments, and takes the
//! content of scripts and styles as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::finding::Finding;
use crate::target::Target;
use crate::text_file::read;

/// A page of the book.
#[derive(Debug, Default)]
struct Html {
    /// Each with its line, from 1.
    links: Vec<(usize, String)>,
    ids: BTreeSet<String>,
}

/// Checks all pages in a folder. Returns their number too.
pub(super) fn check(folder: &Path) -> anyhow::Result<(usize, Vec<Finding>)> {
    let mut files = BTreeSet::new();
    list(folder, Path::new(""), &mut files)?;
    let mut pages = BTreeMap::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "html")) {
        pages.insert(path.clone(), Html::read(&read(&folder.join(path))?));
    }
    Ok((pages.len(), check_pages(&files, &pages)))
}

fn list(folder: &Path, inner: &Path, files: &mut BTreeSet<PathBuf>) -> anyhow::Result<()> {
    let path = folder.join(inner);
    for entry in fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))? {
        let entry = entry?;
        let inner = inner.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(folder, &inner, files)?;
        } else {
            files.insert(inner);
        }
    }
    Ok(())
}

fn check_pages(files: &BTreeSet<PathBuf>, pages: &BTreeMap<PathBuf, Html>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, page) in pages {
        for (line, link) in &page.links {
            if let Some(problem) = problem(path, link, files, pages) {
                findings.push(Finding::new(path, *line, problem, "correct the page of which it is made"));
            }
        }
    }
    findings
}

fn problem(from: &Path, link: &str, files: &BTreeSet<PathBuf>, pages: &BTreeMap<PathBuf, Html>) -> Option<String> {
    let (to, anchor) = match Target::of(from, link) {
        Target::Elsewhere => return None,
        Target::Inside(to, anchor) => (to, anchor),
        Target::Outside => return Some(format!("the link to {link} leads out of the book")),
    };
    if !files.contains(&to) {
        return Some(format!("the link to {link} leads nowhere"));
    }
    let anchor = anchor.filter(|anchor| !anchor.is_empty())?;
    let has_anchor = pages.get(&to).is_some_and(|page| page.ids.contains(anchor));
    (!has_anchor).then(|| format!("{} has no #{anchor}", to.display()))
}

// === impl Html ===

impl Html {
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        let (mut rest, mut line) = (text, 1);
        while let Some(start) = rest.find('<') {
            let (before, tag) = rest.split_at(start);
            line += newlines(before);
            let length = tag_length(tag);
            let (tag, after) = tag.split_at(length);
            page.add(tag, line);
            line += newlines(tag);
            rest = after;
            for name in ["script", "style"] {
                if tag_name(tag) == name {
                    let end = rest.find(&format!("</{name}")).unwrap_or(rest.len());
                    line += newlines(&rest[..end]);
                    rest = &rest[end..];
                }
            }
        }
        page
    }

    fn add(&mut self, tag: &str, line: usize) {
        // The page for errors has one: it is served at any address. It is in the root of the book.
        if tag_name(tag) == "base" {
            return;
        }
        for (name, value) in attributes(tag) {
            match name {
                "href" | "src" => self.links.push((line, unescaped(value))),
                "id" => drop(self.ids.insert(unescaped(value))),
                _ => {}
            }
        }
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// The length of the tag or the comment at the start of a text.
fn tag_length(text: &str) -> usize {
    if text.starts_with("<!--") {
        return text.find("-->").map_or(text.len(), |at| at + "-->".len());
    }
    let mut quote = None;
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (None, '>') => return at + 1,
            (None, '"' | '\'') => quote = Some(char),
            (Some(open), _) if char == open => quote = None,
            _ => {}
        }
    }
    text.len()
}

fn tag_name(tag: &str) -> &str {
    let name = tag.trim_start_matches('<');
    name.split(|char: char| !char.is_ascii_alphanumeric()).next().unwrap_or_default()
}

/// The attributes of a tag that have a value in quotes.
fn attributes(tag: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = if tag.starts_with("<!") || tag.starts_with("</") { "" } else { tag };
    std::iter::from_fn(move || {
        let (before, after) = rest.split_once('=')?;
        let quote = after.chars().next().filter(|char| ['"', '\''].contains(char));
        let Some(quote) = quote else {
            rest = after;
            return Some(("", ""));
        };
        let (value, after) = after[1..].split_once(quote)?;
        rest = after;
        Some((before.rsplit(char::is_whitespace).next().unwrap_or_default(), value))
    })
}

fn unescaped(value: &str) -> String {
    let value = value.replace("&quot;", "\"").replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">");
    value.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_ids_of_a_page() {
        let page = Html::read(
            "<!-- <a href=\"no\"> --><base href=\"/\">\n<script src='a.js'>x = '<a href=\"no\">';\n</script>\n<h2 id=\"b\" class=x>\
             <a class=\"c\" href=\"#b\">a &lt;a href=\"no\"</a></h2>\n<img alt=\"1 > 0\" src=\"a&amp;b.svg\">",
        );
        let links: Vec<_> = page.links.iter().map(|(line, link)| (*line, link.as_str())).collect();
        assert_eq!(links, [(2, "a.js"), (4, "#b"), (5, "a&b.svg")]);
        assert_eq!(page.ids, BTreeSet::from(["b".to_owned()]));
    }

    #[test]
    fn links_of_a_book_lead_somewhere() {
        let texts = [
            (
                "index.html",
                "<a href=\"b/c.html#d\"></a><a href=\"https://example.com\"></a>\n<a href=\"b/c.html#e\"></a>",
            ),
            ("b/c.html", "<p id=\"d\"></p>\n<a href=\"../x.html\"></a><a href=\"../../y\"></a><a href=\"#\"></a>"),
        ];
        let files: BTreeSet<PathBuf> = texts.iter().map(|(path, _)| PathBuf::from(path)).collect();
        let pages = texts.iter().map(|(path, text)| (PathBuf::from(path), Html::read(text))).collect();
        let found: Vec<_> = check_pages(&files, &pages).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("b/c.html:2: the link to ../x.html leads nowhere"));
        assert!(found[1].starts_with("b/c.html:2: the link to ../../y leads out of the book"));
        assert!(found[2].starts_with("index.html:2: b/c.html has no #e"));
    }
}
