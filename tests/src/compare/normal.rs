//! Putting out of sight what cannot be equal on two clusters.
//!
//! Each part knows one kind of value by its form and puts a word in capitals in its place: [`credential`] (certificates,
//! tokens), [`shape`] (UIDs, times), [`number`] (resource versions, addresses, node ports), [`suffix`] (random ends of
//! names), [`age`]. Nothing else is changed but the width of columns, so every other difference is seen.
//!
//! What is *not* here: names of namespaces and objects. Two clusters must show the same ones.

mod age;
mod credential;
mod number;
mod run;
mod shape;
mod suffix;

use serde_json::Value;

use super::act::Outcome;
use super::script::Step;
use super::side::Side;

/// The outcome of a step as lines to compare.
pub(super) fn lines(outcome: &Outcome, step: &Step, side: &Side) -> Vec<String> {
    let mut lines = vec![format!("exit code {}", outcome.code)];
    if step.view.only_code {
        return lines;
    }
    for (name, text) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        let text = credential::certificates(&text.replace(side.server(), "SERVER"));
        let seen = |line: &&str| !step.view.without.iter().any(|text| line.contains(text)) && !is_own_deadline(line);
        let mut found: Vec<_> =
            readable(&text).lines().filter(seen).map(|text| line(text, step.view.any_node)).collect();
        if step.view.sort {
            found.sort_unstable();
        }
        lines.extend(found.into_iter().map(|line| format!("{name}: {line}")));
    }
    lines
}

/// JSON on one line is spread over many, and so is each of several documents, as in a watch.
fn readable(text: &str) -> String {
    // An answer to a request has its head above its body. A brace within a line belongs to that line.
    let at = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|end| end + 1) };
    let Some((head, body)) = at.map(|at| text.split_at(at)) else { return text.to_owned() };
    let documents = serde_json::Deserializer::from_str(body).into_iter::<Value>().collect::<Result<Vec<_>, _>>();
    match documents {
        Ok(documents) if documents.iter().all(Value::is_object) => {
            let documents: Vec<_> = documents.iter().filter(|one| !is_bookmark(one)).collect();
            let documents: Vec<_> = documents.iter().map(|document| format!("{document:#}")).collect();
            format!("{head}{}", documents.join("\n"))
        }
        _ => text.to_owned(),
    }
}

/// Whether this is an event of a watch that a server may send at any time, or never. The one that ends the initial
/// events is another matter: it has an annotation.
fn is_bookmark(document: &Value) -> bool {
    document["type"] == "BOOKMARK" && document["object"]["metadata"]["annotations"].is_null()
}

/// Whether this is what client-go's reflector logs if a client's own `--timeout` ends while a watch is being opened: a
/// race within the client. Without it, the command says only that it timed out.
fn is_own_deadline(line: &str) -> bool {
    line.contains("reflector.go:") && line.contains(r#""Failed to watch" err="context deadline exceeded""#)
}

fn line(text: &str, any_node: bool) -> String {
    let text = credential::tokens(text);
    let text = shape::mask(&text);
    let text = number::resource_versions(&text);
    let text = number::addresses(&text);
    let text = number::node_ports(&text);
    let text = suffix::mask(&text);
    let text = narrow(&age::mask(&text));
    if any_node { text.replace("beijing-1", "NODE").replace("beijing-2", "NODE") } else { text }
}

/// Columns are as wide as their widest value, and that may have been an age. Indentation stays.
fn narrow(line: &str) -> String {
    let content = line.trim_start();
    let mut text = line[..line.len() - content.len()].to_owned();
    let mut blanks = 0;
    for char in content.trim_end().chars() {
        blanks = if char == ' ' { blanks + 1 } else { 0 };
        if blanks <= 2 {
            text.push(char);
        }
    }
    text
}

#[cfg(test)]
mod tests;
