//! `xtask book`: the documentation as a book.
//!
//! The pages are written for two places: a code hosting site shows them beside the code, and mdBook makes a book of them.
//! mdBook knows only one folder, but pages link to the rest of the repository. This task therefore copies the pages to
//! `target/book/src`, and changes their links: to the place of a page in the book, or to a copy of any other file. Then it
//! runs mdBook, and checks the links of the result.
//!
//! Reading order: [`place`] (where something of the repository is in the book), [`files`] (copies of other files),
//! [`built`] (the check of the result).

mod built;
mod files;
mod place;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail, ensure};

use crate::finding::report;
use crate::markdown::Page;
use crate::summary::{self, entries};
use crate::target::{Target, relative};
use crate::text_file::{read, write};
use place::Places;

/// The folder with the settings of the book, and their files.
const SETTINGS: (&str, [&str; 2]) = ("docs", ["book.toml", "book.css"]);
/// Where the book is built.
const FOLDER: &str = "target/book";
/// How to install mdBook. The version is the one that .ci/run installs.
const INSTALL: &str = "cargo install mdbook --version 0.5.4 --locked --no-default-features --features search";

/// Builds the book of the repository with this root, and fails if a link in it leads nowhere.
pub(crate) fn run(root: &Path) -> anyhow::Result<ExitCode> {
    let folder = root.join(FOLDER);
    let source = folder.join("src");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    copy(root, &source)?;
    for file in SETTINGS.1 {
        write(&folder.join(file), &read(&root.join(SETTINGS.0).join(file))?)?;
    }
    build(&folder)?;
    let html = folder.join("html");
    let (n_pages, findings) = built::check(&html)?;
    let summary = match findings.len() {
        0 => format!("{} and {} more pages", html.join("index.html").display(), n_pages.saturating_sub(1)),
        n => format!("{n} findings in {}", html.display()),
    };
    Ok(report("book", &findings, &summary))
}

/// Copies the pages of the book, and everything to which they link.
fn copy(root: &Path, source: &Path) -> anyhow::Result<()> {
    let contents = read(&root.join(summary::FILE))?;
    let pages: Vec<PathBuf> = entries(&contents).into_iter().map(|entry| entry.page).collect();
    ensure!(!pages.is_empty(), "{} lists no pages", summary::FILE);
    let places = Places::new(root, pages);
    let mut others = Vec::new();
    let pages = places.pages().map(|page| (page, places.of(page)));
    for (page, place) in pages.chain([(Path::new(summary::FILE), PathBuf::from("SUMMARY.md"))]) {
        let text = relinked(page, &read(&root.join(page))?, &place, &places, &mut others)?;
        write(&source.join(place), &text)?;
    }
    for other in others {
        files::copy(root, &other, &source.join(places.of(&other)))?;
    }
    Ok(())
}

/// The text of a page with the links that it needs at its place in the book. Adds files and folders that are no pages to
/// `others`.
fn relinked(
    page: &Path,
    text: &str,
    place: &Path,
    places: &Places<'_>,
    others: &mut Vec<PathBuf>,
) -> anyhow::Result<String> {
    let mut result = String::new();
    let mut copied = 0;
    for link in Page::read(text).links {
        let (to, anchor) = match Target::of(page, &link.target) {
            Target::Inside(to, anchor) if to != page => (to, anchor),
            Target::Inside(..) | Target::Elsewhere => continue,
            Target::Outside => bail!("{}:{}: {} is outside", page.display(), link.line, link.target),
        };
        let Some(target) = link.place else {
            bail!("{}:{}: write the link to {} as [text](target)", page.display(), link.line, link.target);
        };
        let new = relative(place, &places.of(&to));
        if !places.is_page(&to) && !others.contains(&to) {
            others.push(to);
        }
        result.push_str(text.get(copied..target.start).context("links are in the order of the text")?);
        result.push_str(new.to_str().context("paths are UTF-8")?);
        result.extend(anchor.map(|anchor| format!("#{anchor}")));
        copied = target.end;
    }
    Ok(result + text.get(copied..).unwrap_or_default())
}

fn build(folder: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("mdbook");
    let status = command.arg("build").arg(folder).status();
    let status = status.with_context(|| format!("cannot run mdbook; install it: {INSTALL}"))?;
    ensure!(status.success(), "mdbook build ended with {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_places_in_the_book() {
        let root = tempfile::tempdir().unwrap();
        let pages = ["docs/README.md", "docs/a.md", "S.md", "ex/b/README.md"].map(PathBuf::from);
        for file in pages.iter().chain(&["x/y.rs", "docs/f.svg"].map(PathBuf::from)) {
            write(&root.path().join(file), "").unwrap();
        }
        let places = Places::new(root.path(), pages.to_vec());
        let mut others = Vec::new();
        let mut changed = |page: &str, text: &str| {
            let page = Path::new(page);
            relinked(page, text, &places.of(page), &places, &mut others)
        };
        let text = "[s](../S.md#t) ![f](f.svg) [y](../x/y.rs) [x](../x) [b](../ex/b) [h](#h) [w](https://w.example)";
        let expected = "[s](S.md#t) ![f](f.svg) [y](files/x/y.rs.html) [x](files/x/index.html) [b](ex/b/index.md) [h](#h) \
                        [w](https://w.example)";
        assert_eq!(changed("docs/a.md", text).unwrap(), expected);
        assert_eq!(
            changed("ex/b/README.md", "[a](../../docs/a.md) [s](../../docs)").unwrap(),
            "[a](../../a.md) [s](../../index.md)"
        );
        assert!(changed("S.md", "[a]\n\n[a]: docs/a.md").is_err());
        assert_eq!(others, ["docs/f.svg", "x/y.rs", "x"].map(PathBuf::from));
    }
}
