//! Masks values that always differ between two clusters.
//!
//! Each module recognizes one kind of value by its form, and replaces it by a word in capitals: [`credential`]
//! (certificates, tokens), [`shape`] (UIDs, times), [`number`] (resource versions, addresses, node ports), [`suffix`]
//! (random suffixes of names), [`age`]. Column widths are also normalized. All other differences remain visible.
//!
//! What is *not* here: names of namespaces and objects. They must be the same on both clusters.

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
        let is_compared =
            |line: &&str| !step.view.without.iter().any(|text| line.contains(text)) && !is_own_deadline(line);
        let mut found: Vec<_> =
            readable(&text).lines().filter(is_compared).map(|text| line(text, step.view.any_node)).collect();
        if step.view.sort {
            found.sort_unstable();
        }
        lines.extend(found.into_iter().map(|line| format!("{name}: {line}")));
    }
    lines
}

/// Formats JSON documents on several lines, also those of a watch.
fn readable(text: &str) -> String {
    // The head of an HTTP response comes before its body. JSON begins at the beginning of a line.
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

/// Whether this is a bookmark, which a server may send at any time. The bookmark after the initial events is not one of
/// these: it has an annotation.
fn is_bookmark(document: &Value) -> bool {
    document["type"] == "BOOKMARK" && document["object"]["metadata"]["annotations"].is_null()
}

/// Whether this is a log line of client-go's reflector. It logs the line only sometimes, when the `--timeout` of the
/// client ends while it opens a watch.
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

/// Normalizes the width of columns, which depends on masked values. Keeps the indentation.
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
