//! Tasks of the workspace itself: `cargo run -p xtask -- TASK`.
//!
//! What is *not* here: anything that ships, and anything that rustc, clippy or rustfmt already checks.

mod tidy;

use std::process::ExitCode;

use clap::Parser;

/// Tasks of the workspace itself.
#[derive(Parser)]
#[command(name = "xtask")]
enum Task {
    /// Check what the compiler and clippy do not: layering, module cycles, sizes, forbidden words, licences.
    Tidy(tidy::Options),
}

fn main() -> anyhow::Result<ExitCode> {
    match Task::parse() {
        Task::Tidy(options) => tidy::run(&options),
    }
}
