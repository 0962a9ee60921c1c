//! The format of the list: one line for each violation. The modules of a cycle are indented below its line, so that two
//! changes that each remove a module from a cycle can be merged.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::violation::Violation;

const HEAD: &str = "\
# The structure that `cargo run -p xtask -- tidy` would refuse if it were new. This list only gets shorter: after you
# clean something up, run `cargo run -p xtask -- tidy --write-known`.
#
# share PACKAGE PERCENT         the package has more than a fifth of the code
# methods CRATE TYPE COUNT      the type has more methods than a type may have
# cycle CRATE                   the modules below form cycles
";

pub(super) fn print(entries: &[Violation]) -> String {
    let mut text = HEAD.to_owned();
    for entry in entries {
        text.push('\n');
        match entry {
            Violation::Share { .. } | Violation::Methods { .. } => text += &entry.to_string(),
            Violation::Cycle { unit, members } => {
                let _ = write!(text, "cycle {unit}");
                for member in members {
                    let _ = write!(text, "\n    {member}");
                }
            }
        }
    }
    text + "\n"
}

/// Each violation with its line, or the first mistake with its line.
pub(super) fn parse(text: &str) -> Result<Vec<(usize, Violation)>, (usize, String)> {
    let mut entries: Vec<(usize, Violation)> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let number = |text: &str| text.parse().map_err(|_| (line, format!("`{text}` is not a number")));
        let words: Vec<_> = content.split_whitespace().collect();
        let entry = match (words.as_slice(), entries.last_mut()) {
            ([], _) => continue,
            ([first, ..], _) if first.starts_with('#') => continue,
            ([member], Some((_, Violation::Cycle { members, .. }))) if content.starts_with(' ') => {
                members.insert((*member).to_owned());
                continue;
            }
            (["share", package, percent], _) => {
                Violation::Share { package: (*package).to_owned(), percent: number(percent)? }
            }
            (["methods", unit, ty, count], _) => {
                Violation::Methods { unit: (*unit).to_owned(), ty: (*ty).to_owned(), count: number(count)? }
            }
            (["cycle", unit], _) => Violation::Cycle { unit: (*unit).to_owned(), members: BTreeSet::new() },
            _ => return Err((line, format!("`{content}` is not an entry"))),
        };
        entries.push((line, entry));
    }
    Ok(entries)
}
