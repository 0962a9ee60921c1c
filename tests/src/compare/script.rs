//! The syntax of scripts.
//!
//! ```text
//! namespaces: edge shop              created before the first command, deleted after the last one
//! alone                              no other script runs at the same time, for lists of all namespaces
//!
//! # A command. Standard output, standard error and exit code are compared.
//! kubectl get pods -n edge
//!   sort                             ignore the order of lines
//!   only-code                        compare only the exit code
//!   any-node                         ignore the names of nodes
//!   ignore-lines TEXT                ignore lines that contain TEXT
//!   editor PROGRAM ARGUMENTS         the editor for `kubectl edit`
//! kubectl apply -f - <<END
//! (standard input)
//! END
//!
//! wait: kubectl ...                  repeat until it succeeds; not compared
//!   shows TEXT                       ... and its output contains TEXT
//! set: POD kubectl ...               store the output in the variable ${POD}
//! file: NAME <<END                   write a file to the working directory of the commands
//! terminal: kubectl exec -it ...     on a terminal of 30 rows and 100 columns
//!   expect TEXT                      wait until the output contains TEXT
//!   type TEXT                        type a line
//!   hang-up                          end the command after the last turn
//! follow: kubectl logs -f ...        compare up to the line with TEXT, then end the command
//!   meanwhile kubectl ...            run this after the first line of output
//!   until TEXT
//! forward: kubectl port-forward ...  send a line to the forwarded port, and compare the response
//!   send TEXT
//! request: METHOD PATH               through `kubectl proxy`; status, some headers and the body are compared
//!   header NAME: VALUE
//! ```

pub(super) mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use self::words::split;

/// The commands of one area.
#[derive(Clone, Debug)]
pub struct Script {
    /// The name of its file without the extension.
    pub name: String,
    /// The namespaces that it uses.
    pub namespaces: Vec<String>,
    /// Whether no other script may run at the same time.
    pub(super) alone: bool,
    /// Its commands, in order.
    pub(super) steps: Vec<Step>,
}

/// One command.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Its line in the file, from 1.
    pub(super) line: usize,
    /// The line without the delimiter of a here-document. The list of known differences names steps by it.
    pub(super) text: String,
    /// The occurrence of this line in the script, from 1.
    pub(super) time: usize,
    /// The action.
    pub(super) action: Action,
    /// How its outcome is compared.
    pub(super) view: View,
}

/// The action of a step. `words` are the arguments of kubectl.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Runs a command to its end.
    Run { words: Vec<String>, input: String, editor: String },
    /// Repeats a command until it succeeds and shows all these texts.
    Wait { words: Vec<String>, shows: Vec<String> },
    /// Stores the output of a command in a variable.
    Set { name: String, words: Vec<String> },
    /// Writes a file.
    File { name: String, text: String },
    /// Runs an interactive command on a terminal.
    Terminal { words: Vec<String>, turns: Vec<Turn>, hang_up: bool },
    /// Runs a command until its output contains a text.
    Follow { words: Vec<String>, meanwhile: Vec<Vec<String>>, until: String },
    /// Sends a line to a forwarded port.
    Forward { words: Vec<String>, send: String },
    /// Sends an HTTP request.
    Request { method: String, path: String, headers: Vec<String>, body: String },
}

/// One turn of an interaction on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Wait for this output.
    Expect(String),
    /// Type this line.
    Type(String),
}

/// How an outcome is compared.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Ignore the order of lines.
    pub(super) sort: bool,
    /// Compare only the exit code.
    pub(super) only_code: bool,
    /// Ignore the names of nodes.
    pub(super) any_node: bool,
    /// Ignore lines that contain one of these texts.
    pub(super) without: Vec<String>,
}

// === impl Script ===

impl Script {
    /// Parses all `.txt` files of a directory, in the order of their names.
    pub fn folder(folder: &Path) -> anyhow::Result<Vec<Self>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            paths.push(entry?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|end| end == "txt"));
        paths.sort_unstable();
        let parse = |path: &PathBuf| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            Self::parse(&name, &std::fs::read_to_string(path)?)
        };
        paths.iter().map(parse).collect()
    }

    /// Parses the text of a file. Errors name the line.
    pub fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let mut script = Self { name: name.to_owned(), namespaces: Vec::new(), alone: false, steps: Vec::new() };
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        while let Some((number, line)) = lines.next() {
            script
                .line(number, line, &mut lines)
                .with_context(|| format!("line {number} of the script {name}: {line}"))?;
        }
        for step in &script.steps {
            step.complete().with_context(|| format!("line {} of the script {name}: {}", step.line, step.text))?;
        }
        Ok(script)
    }

    fn line<'a>(
        &mut self,
        number: usize,
        line: &str,
        lines: &mut impl Iterator<Item = (usize, &'a str)>,
    ) -> anyhow::Result<()> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.starts_with(' ') {
            return self.steps.last_mut().context("there is no command before the directive")?.directive(line.trim());
        }
        if let Some(namespaces) = line.strip_prefix("namespaces:") {
            ensure!(self.steps.is_empty(), "namespaces must come before the commands");
            self.namespaces = namespaces.split_whitespace().map(str::to_owned).collect();
            return Ok(());
        }
        if line == "alone" {
            self.alone = true;
            return Ok(());
        }
        let (text, input) = match line.rsplit_once("<<") {
            Some((text, mark)) if is_mark(mark) => (text.trim_end(), Some(document(mark, lines)?)),
            _ => (line, None),
        };
        let action = action(text, input)?;
        let time = 1 + self.steps.iter().filter(|step| step.text == text).count();
        self.steps.push(Step { line: number, text: text.to_owned(), time, action, view: View::default() });
        Ok(())
    }
}

fn is_mark(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn document<'a>(mark: &str, lines: &mut impl Iterator<Item = (usize, &'a str)>) -> anyhow::Result<String> {
    let mut text = String::new();
    for (_, line) in lines {
        if line == mark {
            return Ok(text);
        }
        text.push_str(line);
        text.push('\n');
    }
    bail!("the here-document has no end: a line {mark}")
}

fn action(text: &str, input: Option<String>) -> anyhow::Result<Action> {
    let (keyword, rest) = match text.split_once(": ") {
        Some((keyword, rest)) if keyword.bytes().all(|byte| byte.is_ascii_lowercase()) => (keyword, rest.trim()),
        _ => ("", text),
    };
    ensure!(input.is_none() || ["", "file", "request"].contains(&keyword), "{keyword} accepts no input");
    let input_or_empty = input.unwrap_or_default();
    Ok(match keyword {
        "" => Action::Run { words: kubectl(rest)?, input: input_or_empty, editor: String::new() },
        "wait" => Action::Wait { words: kubectl(rest)?, shows: Vec::new() },
        "set" => {
            let (name, rest) = rest.split_once(' ').context("set: NAME kubectl ...")?;
            Action::Set { name: name.to_owned(), words: kubectl(rest)? }
        }
        "file" => Action::File { name: rest.to_owned(), text: input_or_empty },
        "terminal" => Action::Terminal { words: kubectl(rest)?, turns: Vec::new(), hang_up: false },
        "follow" => Action::Follow { words: kubectl(rest)?, meanwhile: Vec::new(), until: String::new() },
        "forward" => Action::Forward { words: kubectl(rest)?, send: String::new() },
        "request" => {
            let (method, path) = rest.split_once(' ').context("request: METHOD PATH")?;
            let (method, path) = (method.to_owned(), path.trim().to_owned());
            Action::Request { method, path, headers: Vec::new(), body: input_or_empty }
        }
        _ => bail!("{keyword} is not a kind of step"),
    })
}

/// The arguments of a line that begins with `kubectl`.
fn kubectl(line: &str) -> anyhow::Result<Vec<String>> {
    let mut words = split(line)?;
    ensure!(words.first().is_some_and(|word| word == "kubectl"), "the command is not kubectl");
    words.remove(0);
    Ok(words)
}

// === impl Step ===

impl Step {
    fn directive(&mut self, line: &str) -> anyhow::Result<()> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let flag = ["sort", "only-code", "any-node", "hang-up"].contains(&name);
        ensure!(flag == rest.is_empty(), "{name} {} a text", if flag { "does not accept" } else { "requires" });
        match (name, &mut self.action) {
            ("sort", _) => self.view.sort = true,
            ("only-code", _) => self.view.only_code = true,
            ("any-node", _) => self.view.any_node = true,
            ("ignore-lines", _) => self.view.without.push(rest.to_owned()),
            ("editor", Action::Run { editor, .. }) => rest.clone_into(editor),
            ("shows", Action::Wait { shows, .. }) => shows.push(rest.to_owned()),
            ("expect", Action::Terminal { turns, .. }) => turns.push(Turn::Expect(rest.to_owned())),
            ("type", Action::Terminal { turns, .. }) => turns.push(Turn::Type(rest.to_owned())),
            ("hang-up", Action::Terminal { hang_up, .. }) => *hang_up = true,
            ("meanwhile", Action::Follow { meanwhile, .. }) => meanwhile.push(kubectl(rest)?),
            ("until", Action::Follow { until, .. }) => rest.clone_into(until),
            ("send", Action::Forward { send, .. }) => rest.clone_into(send),
            ("header", Action::Request { headers, .. }) => headers.push(rest.to_owned()),
            _ => bail!("{name} is not a directive of this step"),
        }
        Ok(())
    }

    fn complete(&self) -> anyhow::Result<()> {
        match &self.action {
            Action::Follow { until, .. } => ensure!(!until.is_empty(), "`until` is missing"),
            Action::Forward { send, .. } => ensure!(!send.is_empty(), "`send` is missing"),
            Action::Terminal { turns, .. } => {
                let ends = [turns.first(), turns.last()];
                let expects = |turn: Option<&Turn>| matches!(turn, Some(Turn::Expect(_)));
                ensure!(ends.into_iter().all(expects), "the first and the last turn must be an `expect`");
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
