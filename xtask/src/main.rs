//! Tasks of the workspace itself: `cargo run -p xtask -- TASK`.
//!
//! What is *not* here: code of the programs, and anything that rustc, clippy or rustfmt already checks.
//!
//! Reading order: [`tree`], [`finding`], [`text_file`], [`markdown`], [`target`] (files and pages, for all tasks),
//! [`summary`], [`mod@reference`] (the pages of the book); [`tidy`], [`book`], [`dist`] (the tasks).

mod book;
mod dist;
mod finding;
mod markdown;
mod reference;
mod summary;
mod target;
mod text_file;
mod tidy;
mod tree;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;

/// Tasks of the workspace itself.
#[derive(Parser)]
#[command(name = "xtask")]
enum Task {
    /// Build the files of a release: archives, Debian packages, images, checksums, and lists of what they contain.
    Dist(dist::Options),
    /// Check what the compiler and clippy do not: layering, module cycles, sizes, forbidden words, links, generated pages.
    Tidy(tidy::Options),
    /// Build the documentation as a book with mdBook, into target/book/html, and check all links in its pages.
    Book,
    /// Write the pages of the book that are generated from configs/*.yaml.
    Reference,
}

fn main() -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    match Task::parse() {
        Task::Dist(options) => dist::run(root, &options),
        Task::Tidy(options) => tidy::run(root, &options),
        Task::Book => book::run(root),
        Task::Reference => reference::run(root),
    }
}
