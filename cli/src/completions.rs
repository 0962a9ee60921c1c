//! `atoll completions`: shell completions of commands and flags.

use std::io::Write;

use clap::Command;
use clap_complete::{Shell, generate};

use crate::programs::Program;

/// Print completions for a shell.
///
/// By default, the completions are those of atoll. --of selects another program. Exits with 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Load completions into this shell\n  \
    source <(atoll completions bash)\n\n  \
    # Install completions for zsh and fish\n  \
    atoll completions zsh > \"${fpath[1]}/_atoll\"\n  \
    atoll completions fish > ~/.config/fish/completions/atoll.fish\n\n  \
    # Install completions of proxy-agent for bash\n  \
    atoll completions bash --of proxy-agent > /usr/share/bash-completion/completions/proxy-agent")]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,

    /// The program.
    #[arg(long, value_name = "PROGRAM", default_value = "atoll")]
    of: Program,
}

/// Prints the completions of `atoll`, whose flags are given, or of another program.
pub(crate) fn run(args: &Args, atoll: &Command, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut command = args.of.command(atoll);
    let name = command.get_name().to_owned();
    // Into memory first: the generator panics if it cannot write, for example to a closed pipe.
    let mut script = Vec::new();
    generate(args.shell, &mut command, name, &mut script);
    out.write_all(&script)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, ValueEnum as _};

    use super::*;
    use crate::Cli;

    #[test]
    fn every_program_has_completions_for_every_shell() {
        for shell in Shell::value_variants() {
            for (of, flag) in Program::ALL.into_iter().zip(["server-config", "log-format", "https-proxy"]) {
                let mut out = Vec::new();
                run(&Args { shell: *shell, of }, &Cli::command(), &mut out).unwrap();
                assert!(String::from_utf8(out).unwrap().contains(flag), "{shell} {of:?}");
            }
        }
    }
}
