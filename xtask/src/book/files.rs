//! Copies of files that are no pages: figures as they are, text as an HTML page, and a list of the files of a folder.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::place::is_figure;
use crate::text_file::{read, write};

/// Copies a file or a folder of the repository to its place.
pub(super) fn copy(root: &Path, path: &Path, place: &Path) -> anyhow::Result<()> {
    let found = root.join(path);
    if found.is_dir() {
        return copy_folder(root, path, place);
    }
    let text = read(&found)?;
    if is_figure(path) {
        return write(place, &text);
    }
    write(place, &page(path, &format!("<pre>{}</pre>", escaped(&text))))
}

/// Copies all files in a folder, and writes a list of them.
fn copy_folder(root: &Path, path: &Path, place: &Path) -> anyhow::Result<()> {
    let folder = place.parent().context("a list is in a folder")?;
    let found = root.join(path);
    let entries = fs::read_dir(&found).with_context(|| format!("cannot list {}", found.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().into_string();
        names.push(name.ok().with_context(|| format!("{} has a file whose name is not UTF-8", found.display()))?);
    }
    names.sort();
    let mut list = String::new();
    for name in names.iter().filter(|name| *name != "target" && *name != ".git") {
        let is_folder = found.join(name).is_dir();
        let link = match is_folder {
            true => format!("{name}/index.html"),
            false if is_figure(Path::new(name)) => name.clone(),
            false => format!("{name}.html"),
        };
        // What is not text is listed, but not shown.
        if is_folder || read(&found.join(name)).is_ok() {
            copy(root, &path.join(name), &folder.join(&link))?;
            list.extend(["<li><a href=\"", &escaped(&link), "\">", &escaped(name), "</a></li>\n"]);
        } else {
            list.extend(["<li>", &escaped(name), "</li>\n"]);
        }
    }
    write(place, &page(path, &format!("<ul>\n{list}</ul>")))
}

fn page(path: &Path, body: &str) -> String {
    let name = escaped(&path.display().to_string());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{name}</title>\n\
         <style>:root {{ color-scheme: light dark; }} body {{ margin: 1em; }}</style>\n</head>\n\
         <body>\n<h1>{name}</h1>\n{body}\n</body>\n</html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
