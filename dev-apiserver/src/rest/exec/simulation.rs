//! The results of a few commands. No container runs.

use serde_json::Value;

use super::channel::{STDERR, STDOUT};
use crate::object;

/// The exit code of a shell for a command that cannot be executed (POSIX, section 2.8.2).
const CANNOT_RUN: u8 = 126;

/// The result of a simulated command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Simulation {
    pub(super) output: String,
    pub(super) channel: u8,
    pub(super) echoes_input: bool,
    pub(super) exit_code: u8,
}

/// The result of a command in a container. `attach` has no command.
pub(super) fn simulate(
    pod: &Value,
    container: &str,
    command: &[String],
    has_input: bool,
    is_terminal: bool,
) -> Simulation {
    let end = if is_terminal { "\r\n" } else { "\n" };
    let name = object::name(pod);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let output = match words.as_slice() {
        ["echo", words @ ..] => words.join(" ") + end,
        ["hostname"] => format!("{name}{end}"),
        ["env" | "printenv"] => {
            let containers = object::items(&pod["spec"]["containers"]).iter();
            let of = containers.filter(|one| one["name"] == container).flat_map(|one| object::items(&one["env"]));
            let own = format!("HOSTNAME={name}{end}");
            of.fold(own, |text, variable| {
                let text_of = |field: &str| variable[field].as_str().unwrap_or_default().to_owned();
                text + &text_of("name") + "=" + &text_of("value") + end
            })
        }
        ["cat"] if has_input => String::new(),
        [] => String::new(),
        words => {
            let command = words.join(" ");
            let output = format!("dev-apiserver runs no containers; {name}/{container} would run: {command}{end}");
            let channel = if is_terminal { STDOUT } else { STDERR };
            return Simulation { output, channel, echoes_input: has_input && is_terminal, exit_code: CANNOT_RUN };
        }
    };
    Simulation { output, channel: STDOUT, echoes_input: has_input, exit_code: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_few_commands_are_simulated() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]}});
        let output = |words: &[&str]| {
            let command: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            simulate(&pod, "c", &command, false, false).output
        };
        assert_eq!(output(&["echo", "a", "b"]), "a b\n");
        assert_eq!(output(&["env"]), "HOSTNAME=p\nA=1\n");
        assert!(output(&["rm", "-rf", "/"]).ends_with("p/c would run: rm -rf /\n"));
        let refused = simulate(&pod, "c", &["rm".to_owned()], true, false);
        assert_eq!((refused.channel, refused.echoes_input, refused.exit_code), (STDERR, false, CANNOT_RUN));
    }
}
