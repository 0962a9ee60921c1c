//! Man pages and shell completions, which `atoll` writes.

use std::path::Path;
use std::process::Command;

use super::arch::Arch;
use super::command::output;
use super::release::PROGRAMS;
use super::tree::{Mode, Tree};

/// Shells, and the places of their completions. `PROGRAM` stands for the name of a program.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/PROGRAM"),
    ("zsh", "share/zsh/site-functions/_PROGRAM"),
    ("fish", "share/fish/vendor_completions.d/PROGRAM.fish"),
];

/// Writes them to `tree`, below `share`. `atoll` is a program for `arch`.
pub(crate) fn write(atoll: &Path, arch: Arch, tree: &Tree) -> anyhow::Result<()> {
    let pages = tree.root().join("share/man");
    output(atoll_command(atoll, arch).arg("man").arg(pages))?;
    for program in PROGRAMS {
        for (shell, path) in COMPLETIONS {
            let script = output(atoll_command(atoll, arch).args(["completions", shell, "--of", program]))?;
            tree.write(&path.replace("PROGRAM", program), script, Mode::Data)?;
        }
    }
    Ok(())
}

fn atoll_command(atoll: &Path, arch: Arch) -> Command {
    if arch.is_native() {
        return Command::new(atoll);
    }
    let mut emulator = Command::new(arch.emulator());
    emulator.arg(atoll);
    emulator
}
