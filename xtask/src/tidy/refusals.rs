//! The troubleshooting guide explains every refusal that a user may get, with its cause and remedy. No table of the
//! guide explains a message twice, which can happen when two versions of a table are merged.
//!
//! Only the files in [`SAID`] are read. The parts of a message in braces vary; the guide must contain the rest
//! verbatim.

use std::collections::HashSet;
use std::path::Path;

use super::source::Source;
use crate::finding::Finding;
use crate::tree::Tree;

/// The page that explains them.
const GUIDE: &str = "docs/troubleshooting.md";

/// The files that define them.
const SAID: [&str; 5] = [
    "proxy-agent/src/exchange/cost.rs",
    "virtual-cluster/src/policy.rs",
    "proxy-agent/src/refusal.rs",
    "proxy-server/src/connect/refusal.rs",
    "proxy-server/src/endpoint/refusal.rs",
];

/// The minimum length, in bytes, of a piece of a message that is checked.
const SHORT: usize = 12;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let guide = tree.text(Path::new(GUIDE)).unwrap_or_default();
    let mut findings: Vec<_> = repeated(guide)
        .map(|(line, row)| {
            Finding::new(Path::new(GUIDE), line, format!("`{row}` is explained twice"), "make one row of both")
        })
        .collect();
    let guide = normal(guide);
    for path in SAID.map(Path::new) {
        let Some(text) = tree.text(path) else {
            findings.push(Finding::new(path, 1, "there are no refusals here any more", "name the file that has them"));
            continue;
        };
        let source = Source::new(path, text);
        for (line, message) in messages(&source) {
            if !pieces(&message).all(|piece| guide.contains(piece)) {
                let problem = format!("`{message}` is not explained");
                findings.push(Finding::new(
                    path,
                    line,
                    problem,
                    format!("say in {GUIDE} what it comes from and what to do"),
                ));
            }
        }
    }
    findings
}

/// Rows of a table that repeat an earlier row, except for the last two cells (cause and remedy).
fn repeated(guide: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut table = HashSet::new();
    (1..).zip(guide.lines()).filter_map(move |(line, row)| {
        if !row.starts_with('|') {
            table.clear();
            return None;
        }
        let ends: Vec<_> = row.match_indices(" | ").map(|(at, _)| at).collect();
        let key = &row[..*ends.iter().nth_back(1)?];
        (!table.insert(key)).then_some((line, key))
    })
}

/// The literals of a file that are sentences and not in tests, with their lines.
fn messages(source: &Source<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut line, mut start, mut literal) = (1, 1, String::new());
    let views = source.text.chars().zip(source.views.code.chars()).zip(source.views.comments.chars());
    for ((char, code), comment) in views.chain([((';', ';'), ' ')]) {
        // What is in neither view is part of a literal, or white space around one.
        if code.is_whitespace() && comment.is_whitespace() {
            if literal.is_empty() && char == '"' {
                start = line;
            }
            if !literal.is_empty() || char == '"' {
                literal.push(char);
            }
        } else if !literal.is_empty() {
            let text = unescaped(&std::mem::take(&mut literal));
            if text.split(' ').count() > 2 && !source.is_test(start) {
                found.push((start, text));
            }
        }
        line += usize::from(char == '\n');
    }
    found
}

/// The value of a literal: joins continued lines and unescapes quotes.
fn unescaped(literal: &str) -> String {
    let text = literal.trim();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let whole = lines.fold(first, |whole, line| whole + line.trim_start());
    normal(&whole.replace("\\\"", "\""))
}

fn pieces(message: &str) -> impl Iterator<Item = &str> {
    let outside = message.split('{').map(|part| part.split_once('}').map_or(part, |(_, after)| after));
    outside.map(|piece| piece.trim_matches([' ', ',', '.', ':'])).filter(|piece| piece.len() >= SHORT)
}

/// With single spaces, and without the backquotes of Markdown.
fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        messages(&Source::new(Path::new("virtual-cluster/src/policy.rs"), text))
    }

    #[test]
    fn messages_are_sentences_outside_of_tests() {
        let text = "// \"a comment is no message\"\n#[error(\"no agent for {0} here\")]\nf(\"short\",\n  \"one that \\\n     \
                    goes on \\\"so\\\"\");\n#[cfg(test)]\nmod tests { const A: &str = \"a test of a thing\"; }\n";
        let expected = [(2, "no agent for {0} here".to_owned()), (4, "one that goes on \"so\"".to_owned())];
        assert_eq!(found(text), expected);
    }

    #[test]
    fn a_message_has_one_row_in_a_table() {
        let table =
            "| code | message | cause | what to do |\n|---|---|---|---|\n| 403 | no | a | b |\n| 404 | no | a | b |\n";
        assert_eq!(repeated(&format!("{table}\n{table}")).count(), 0);
        let found: Vec<_> = repeated("| 403 | no | a | b |\n| 404 | no | a | b |\n| 403 | no | c | d |\n").collect();
        assert_eq!(found, [(3, "| 403 | no")]);
    }

    #[test]
    fn what_differs_need_not_be_in_the_guide() {
        let found: Vec<_> = pieces("the agent of {cluster} could not reach {}: {why}").collect();
        assert_eq!(found, ["the agent of", "could not reach"]);
        assert_eq!(pieces("{0}").count(), 0);
    }
}
