//! The page of the book about commands: the texts of `--help` in Markdown.

use clap::{Arg, ArgAction, Command};

/// The maximum width of a line.
const WIDTH: usize = 128;

const PREFACE: &str = "This page lists the commands of Atoll: `atoll` for operators and users, and the two programs \
                       `proxy-server` and `proxy-agent`. It has the texts of `--help`, and `atoll man --markdown` generates it. \
                       A command prints its help with `--help`, and its version with `--version`.";

/// The page of these programs.
pub(super) fn page<'a>(programs: impl Iterator<Item = &'a Command>) -> String {
    let mut page = format!("# Commands\n\n{}\n", wrapped(PREFACE, ""));
    for program in programs {
        section(program, program.get_name(), &mut page);
    }
    page
}

/// Appends the section of a command and those of its subcommands.
fn section(command: &Command, name: &str, page: &mut String) {
    let level = if name.contains(' ') { "###" } else { "##" };
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    page.extend(["\n", level, " `", name, "`\n"]);
    for paragraph in about.split("\n\n") {
        page.extend(["\n", &wrapped(&sentence(paragraph), ""), "\n"]);
    }
    page.extend(["\n```text\n", usage.trim(), "\n```\n"]);
    let arguments: Vec<&Arg> = command.get_arguments().filter(|argument| is_listed(argument)).collect();
    if !arguments.is_empty() {
        page.push('\n');
    }
    for argument in arguments {
        page.extend([&wrapped(&item(argument), "  "), "\n"]);
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if let Some(examples) = after.strip_prefix("Examples:\n") {
        // What follows the examples begins at the left margin.
        let is_example = |line: &&str| line.is_empty() || line.starts_with(' ');
        let examples: Vec<&str> = examples.lines().take_while(is_example).map(str::trim).collect();
        page.extend(["\nExamples:\n\n```sh\n", examples.join("\n").trim_end(), "\n```\n"]);
    }
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        section(subcommand, &format!("{name} {}", subcommand.get_name()), page);
    }
}

/// Every command has `--help`, and every program `--version`.
fn is_listed(argument: &Arg) -> bool {
    let is_common = matches!(
        argument.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    !is_common && !argument.is_hide_set()
}

/// An argument as an item of a list: its form, its help, its values and its default.
fn item(argument: &Arg) -> String {
    let value = argument.get_value_names().unwrap_or_default().join(" ");
    let takes_value = argument.get_action().takes_values();
    let mut form = match (argument.get_short(), argument.get_long()) {
        (None, None) => String::new(),
        (Some(short), None) => format!("-{short} "),
        (None, Some(long)) => format!("--{long} "),
        (Some(short), Some(long)) => format!("-{short}, --{long} "),
    };
    if takes_value {
        form.push_str(&value);
    }
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut item = format!("- `{}`: {}", form.trim(), sentence(&help));
    let values: Vec<String> =
        argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if takes_value && !values.is_empty() {
        item.extend([" Values: ", &values.join(", "), "."]);
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_value && !defaults.is_empty() {
        item.extend([" Default: `", &defaults.join(" "), "`."]);
    }
    if let Some(variable) = argument.get_env() {
        item.extend([" Environment: `", &variable.to_string_lossy(), "`."]);
    }
    item
}

/// Text as Markdown, with the full stop that clap removes.
fn sentence(text: &str) -> String {
    let mut sentence = String::new();
    for (index, part) in text.trim().split('`').enumerate() {
        if index > 0 {
            sentence.push('`');
        }
        match index % 2 {
            0 => sentence.push_str(&part.replace('<', "\\<").replace('*', "\\*")),
            _ => sentence.push_str(part),
        }
    }
    if !sentence.ends_with(['.', ':']) {
        sentence.push('.');
    }
    sentence
}

/// The text in lines of limited width, of which all but the first begin with `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines.extend(["\n", indent]);
            width = indent.len();
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_its_arguments_and_examples() {
        let mut command = Command::new("x")
            .about("Do <it>")
            .arg(Arg::new("file").value_name("FILE").help("The file"))
            .arg(
                Arg::new("out")
                    .short('o')
                    .long("out")
                    .value_name("F")
                    .value_parser(["a", "b"])
                    .default_value("a")
                    .help("Form"),
            )
            .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("All of `<x>`."))
            .subcommand(Command::new("y").about("Other"))
            .after_help("Examples:\n  # One\n  x a\n\n  x b\n\nMore.");
        command.build();
        let found = page([&command].into_iter());
        let (_, found) = found.split_once("`--version`.\n").unwrap();
        let expected = "\n## `x`\n\nDo \\<it>.\n\n```text\nUsage: x [OPTIONS] [FILE] [COMMAND]\n```\n\n- `FILE`: The file.\n\
                        - `-o, --out F`: Form. Values: `a`, `b`. Default: `a`.\n- `--all`: All of `<x>`.\n\n\
                        Examples:\n\n```sh\n# One\nx a\n\nx b\n```\n\n### `x y`\n\nOther.\n\n```text\nUsage: x y\n```\n";
        assert_eq!(found, expected);
    }
}
