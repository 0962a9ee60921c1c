//! A browser without a window: Chromium. It runs scripts, so it shows whether a page has one.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};

/// The names of the program: those of Debian, of other distributions, and of Google.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The time limit for a page.
const TIMEOUT_SECONDS: &str = "60";

/// A page as the browser has read it.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its document, written as HTML again.
    pub dom: String,
    /// What the browser logs, with the messages of its console.
    pub log: String,
}

// === impl Page ===

impl Page {
    /// Opens this address, and waits until the page is loaded.
    pub fn open(address: &str) -> anyhow::Result<Self> {
        let profile = tempfile::tempdir()?;
        // The sandbox does not work as root, and the pages are ours. timeout(1) ends a browser that does not end.
        let output = Command::new("timeout")
            .arg(TIMEOUT_SECONDS)
            .arg(program()?)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--enable-logging=stderr", "--no-proxy-server", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(address)
            .output()
            .context("cannot start timeout")?;
        let [dom, log] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        ensure!(output.status.success() && !dom.is_empty(), "{address}: {}\n{log}", output.status);
        Ok(Self { dom, log })
    }

    /// The text of all cells of the table with this caption, by row. The first row is the heading.
    pub fn table(&self, caption: &str) -> anyhow::Result<Vec<Vec<String>>> {
        let (_, table) = self
            .dom
            .split_once(&format!("<caption>{caption}</caption>"))
            .with_context(|| format!("no table {caption:?} in {}", self.dom))?;
        let (table, _) = table.split_once("</table>").context("the table does not end")?;
        // Inside of a cell, the browser writes `<` and `>` as references.
        let cells = |row: &str| -> Vec<String> {
            let row = row.replace("</th>", "</td>");
            let cells = row.split("</td>").filter_map(|cell| cell.rsplit_once('>'));
            let cells = cells.map(|(_, text)| text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
            cells.collect()
        };
        let (rows, _) = table.rsplit_once("</tr>").context("the table has no rows")?;
        Ok(rows.split("</tr>").map(cells).collect())
    }

    /// The cell of this table in the row that begins with `row`, below the heading `column`.
    pub fn cell(&self, caption: &str, row: &str, column: &str) -> anyhow::Result<String> {
        let table = self.table(caption)?;
        let (heading, rows) = table.split_first().context("no heading")?;
        let column =
            heading.iter().position(|name| name == column).with_context(|| format!("{column}: {heading:?}"))?;
        let row = rows.iter().find(|cells| cells.first().is_some_and(|first| first == row));
        let row = row.with_context(|| format!("no row {row:?} in {rows:?}"))?;
        row.get(column).cloned().with_context(|| format!("{row:?} is short"))
    }

    /// Fails if the page has a script, or if the browser has refused a part of it.
    pub fn is_harmless(&self) -> anyhow::Result<()> {
        ensure!(!self.dom.contains("<script"), "{}", self.dom);
        ensure!(!self.log.contains("Content Security Policy"), "{}", self.log);
        Ok(())
    }
}

fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = PROGRAMS.iter().find_map(|name| {
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
    });
    found.with_context(|| format!("no browser: install one of {PROGRAMS:?}"))
}
