//! Runs other programs. A failure names the program and its arguments.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Runs a program whose output the user sees.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start {}", shown(command)))?;
    ensure!(status.success(), "{status}: {}", shown(command));
    Ok(())
}

/// Runs a program, and returns its output.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", shown(command)))?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}\n{}", output.status, shown(command), problem.trim());
    String::from_utf8(output.stdout).with_context(|| format!("the output is not UTF-8: {}", shown(command)))
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command() {
        let error = run(&mut Command::new("false")).unwrap_err().to_string();
        assert!(error.ends_with(": false"), "{error}");
        let error = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("3: sh -c") && error.ends_with("\nwhy"), "{error}");
        assert_eq!(output(Command::new("echo").arg("a")).unwrap(), "a\n");
    }
}
