//! The command that users type: `atoll`, or `kubectl atoll`.
//!
//! kubectl runs the program `kubectl-atoll` of the `PATH` for `kubectl atoll` (kubectl's plugins). That program is this
//! one under another name, so its texts name the command that the user has typed.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command};

/// The name of the file as a plugin.
const PLUGIN: &str = "kubectl-atoll";

/// How this process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invocation {
    Atoll,
    Plugin,
}

// === impl Invocation ===

impl Invocation {
    /// The one of this process.
    pub(crate) fn current() -> Self {
        Self::of(std::env::args_os().next().as_deref())
    }

    /// The one with this first argument, which is the name of the program.
    fn of(program: Option<&OsStr>) -> Self {
        let name = program.and_then(|program| Path::new(program).file_name());
        if name.is_some_and(|name| name == PLUGIN) { Self::Plugin } else { Self::Atoll }
    }

    /// The command that the user types.
    pub(crate) fn typed(self) -> &'static str {
        match self {
            Self::Atoll => "atoll",
            Self::Plugin => "kubectl atoll",
        }
    }

    /// A text in which commands are those that the user types. `atoll` are the flags of the command.
    pub(crate) fn text<'a>(self, text: &'a str, atoll: &Command) -> Cow<'a, str> {
        match self {
            Self::Atoll => text.into(),
            Self::Plugin => with_kubectl(text, &names(atoll)).into(),
        }
    }

    /// The flags of the command, with such texts.
    pub(crate) fn flags(self, atoll: Command) -> Command {
        match self {
            Self::Atoll => atoll,
            Self::Plugin => {
                let names = names(&atoll);
                translate(atoll.name(PLUGIN).bin_name(self.typed()), &names)
            }
        }
    }
}

/// The names of the subcommands.
fn names(atoll: &Command) -> Vec<String> {
    atoll.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect()
}

/// Writes `kubectl atoll` where a text has `atoll` and one of these subcommands. `atoll` alone is the name of the
/// project, or of a file.
fn with_kubectl(text: &str, subcommands: &[String]) -> String {
    const NAME: &str = "atoll ";
    let in_word = |char: char| char.is_alphanumeric() || "-_./".contains(char);
    let mut translated = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(NAME) {
        let (before, after) = rest.split_at(at + NAME.len());
        let before = &before[..at];
        let word = after.split(|char: char| !in_word(char)).next().unwrap_or_default();
        let is_command =
            subcommands.iter().any(|name| name == word) && !before.ends_with(in_word) && !before.ends_with("kubectl ");
        translated.push_str(before);
        translated.push_str(if is_command { "kubectl atoll " } else { NAME });
        rest = after;
    }
    translated + rest
}

/// Translates the help of a command and of its subcommands.
fn translate(command: Command, names: &[String]) -> Command {
    let text = |text: &StyledStr| with_kubectl(&text.to_string(), names);
    let about = command.get_about().map(text);
    let long_about = command.get_long_about().map(text);
    let after_help = command.get_after_help().map(text);
    let mut command = command.mut_args(|argument| translate_argument(argument, names));
    if let Some(about) = about {
        command = command.about(about);
    }
    if let Some(long_about) = long_about {
        command = command.long_about(long_about);
    }
    if let Some(after_help) = after_help {
        command = command.after_help(after_help);
    }
    command.mut_subcommands(|subcommand| translate(subcommand, names))
}

fn translate_argument(argument: Arg, names: &[String]) -> Arg {
    let text = |text: &StyledStr| with_kubectl(&text.to_string(), names);
    let (help, long_help) = (argument.get_help().map(text), argument.get_long_help().map(text));
    let argument = match help {
        Some(help) => argument.help(help),
        None => argument,
    };
    match long_help {
        Some(help) => argument.long_help(help),
        None => argument,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    #[test]
    fn the_name_of_the_file_decides() {
        let of = |program: &str| Invocation::of(Some(OsStr::new(program)));
        assert_eq!(of("/root/.krew/bin/kubectl-atoll"), Invocation::Plugin);
        assert_eq!(of("kubectl-atoll"), Invocation::Plugin);
        for other in ["atoll", "/usr/bin/atoll", "/kubectl-atoll/atoll", "kubectl-atolls", ""] {
            assert_eq!(of(other), Invocation::Atoll, "{other}");
        }
        assert_eq!(Invocation::of(None), Invocation::Atoll);
    }

    #[test]
    fn only_commands_get_the_prefix() {
        let text = |text: &'static str| Invocation::Plugin.text(text, &Cli::command()).into_owned();
        assert_eq!(
            text("run `atoll certs init`, then atoll demo"),
            "run `kubectl atoll certs init`, then kubectl atoll demo"
        );
        assert_eq!(text("source <(atoll completions bash)"), "source <(kubectl atoll completions bash)");
        for same in [
            "kubectl atoll demo",
            "this atoll supports v1",
            "./atoll demo",
            "localhost/atoll check",
            "atoll demos",
            "atoll ",
        ] {
            assert_eq!(text(same), same);
        }
        assert_eq!(Invocation::Atoll.text("atoll demo", &Cli::command()), "atoll demo");
    }

    /// No help of the plugin has a command without the prefix, and the plugin has all commands and flags.
    #[test]
    fn the_help_of_the_plugin_has_its_name() {
        fn check(plugin: &mut Command, atoll: &mut Command, names: &[String]) {
            let help = plugin.render_long_help().to_string();
            let bare = atoll.render_long_help().to_string();
            // The prefix moves the ends of lines.
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words(&help).replace("kubectl atoll", "atoll"), words(&bare).replace("kubectl atoll", "atoll"));
            assert!(help.contains("Usage: kubectl atoll"), "{help}");
            let help = words(&help);
            for (at, _) in help.match_indices("atoll ") {
                let word = help[at + 6..].split_whitespace().next().unwrap_or_default();
                assert!(!names.iter().any(|name| name == word) || help[..at].ends_with("kubectl "), "{}", &help[at..]);
            }
            for (plugin, atoll) in plugin.get_subcommands_mut().zip(atoll.get_subcommands_mut()) {
                check(plugin, atoll, names);
            }
        }
        let (mut plugin, mut atoll) = (Invocation::Plugin.flags(Cli::command()), Cli::command());
        let names = names(&atoll);
        plugin.build();
        atoll.build();
        check(&mut plugin, &mut atoll, &names);
    }
}
