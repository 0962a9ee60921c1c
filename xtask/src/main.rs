//! Tasks of the workspace itself: `cargo run -p xtask -- TASK`.
//!
//! What is *not* here: code of the programs, and anything that rustc, clippy or rustfmt already checks.

mod dist;
mod tidy;

use std::process::ExitCode;

use clap::Parser;

/// Tasks of the workspace itself.
#[derive(Parser)]
#[command(name = "xtask")]
enum Task {
    /// Build the files of a release: archives, Debian packages, images, checksums, and lists of what they contain.
    Dist(dist::Options),
    /// Check what the compiler and clippy do not: layering, module cycles, sizes, forbidden words, licences.
    Tidy(tidy::Options),
}

fn main() -> anyhow::Result<ExitCode> {
    match Task::parse() {
        Task::Dist(options) => dist::run(&options),
        Task::Tidy(options) => tidy::run(&options),
    }
}
