//! `atoll man`: man pages of all three programs, from the texts of `--help`. [`markdown`] makes one page of the book.

mod markdown;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Command;
use clap_mangen::Man;
use ops::files::{Existing, Secrecy, write};

use crate::programs::Program;

/// Write man pages of atoll, proxy-server and proxy-agent.
///
/// Creates DIR/man1 and DIR/man8, with a page for each program and each subcommand of atoll, as packages need them.
/// Existing pages are replaced. With --markdown, it prints one Markdown page with the same texts instead. Exits with 0, or
/// with 1 if a page cannot be written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Install the pages for the current user, and read one\n  \
    atoll man ~/.local/share/man\n  \
    man atoll-check\n\n  \
    # Install the pages into the directory of a package\n  \
    atoll man \"$DESTDIR/usr/share/man\"\n\n  \
    # Write the page of the documentation\n  \
    atoll man --markdown > docs/cli.md")]
pub(crate) struct Args {
    /// The directory of man pages, as in MANPATH.
    #[arg(value_name = "DIR", required_unless_present = "markdown")]
    directory: Option<PathBuf>,

    /// Print one Markdown page of all programs.
    #[arg(long, conflicts_with = "directory")]
    markdown: bool,
}

/// Writes the pages of all programs. The flags of `atoll` are given.
pub(crate) fn run(args: &Args, atoll: &Command, out: &mut dyn Write) -> anyhow::Result<()> {
    let commands = Program::ALL.map(|program| (program, program.command(atoll)));
    let Some(directory) = &args.directory else {
        out.write_all(markdown::page(commands.iter().map(|(_, command)| command)).as_bytes())?;
        return Ok(());
    };
    for (program, command) in &commands {
        page(directory, program.section(), command.get_name(), command, out)?;
    }
    Ok(())
}

/// Writes the page of a command and those of its subcommands.
fn page(directory: &Path, section: &str, name: &str, command: &Command, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut text = Vec::new();
    Man::new(command.clone()).title(name).section(section).render(&mut text).context("cannot render a page")?;
    let path = directory.join(format!("man{section}")).join(format!("{name}.{section}"));
    write(&path, &text, Secrecy::Public, Existing::Replace)?;
    writeln!(out, "wrote {}", path.display())?;
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        page(directory, section, &format!("{name}-{}", subcommand.get_name()), subcommand, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    #[test]
    fn every_command_has_a_page() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        run(&Args { directory: Some(dir.path().to_owned()), markdown: false }, &Cli::command(), &mut out).unwrap();
        for (page, text) in [
            ("man1/atoll.1", "atoll\\-check"),
            ("man1/atoll-certs-init.1", ".TH atoll-certs-init 1"),
            ("man1/atoll-explain.1", "\\-\\-cluster"),
            ("man8/proxy-server.8", "\\-\\-log\\-format"),
            ("man8/proxy-agent.8", "SIGHUP"),
        ] {
            let found = std::fs::read_to_string(dir.path().join(page)).unwrap();
            assert!(found.contains(text), "{page}\n{found}");
        }
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 30);
    }

    #[test]
    fn the_book_has_the_current_page() {
        let mut out = Vec::new();
        run(&Args { directory: None, markdown: true }, &Cli::command(), &mut out).unwrap();
        let written = String::from_utf8(out).unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md");
        let found = std::fs::read_to_string(path).unwrap_or_default();
        let differs = found.lines().zip(written.lines()).find(|(found, written)| found != written);
        let remedy = "run `cargo run -p atoll -- man --markdown >docs/cli.md`";
        assert!(found == written, "docs/cli.md is not current; {remedy}; the first difference: {differs:?}");
    }
}
