//! A unified diff of two texts, line by line.

use std::fmt::Write as _;

/// The number of equal lines before and after a change.
const CONTEXT_LINES: usize = 3;

/// If there are more lines between the first and the last difference, the diff has all lines of the first text, then
/// all lines of the second one. The table for a shortest diff has the square of this size.
const MAX_COMPARED: usize = 2000;

/// One line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// In both texts.
    Both(&'a str),
    /// Only in the first text.
    First(&'a str),
    /// Only in the second text.
    Second(&'a str),
}

/// The changes, with some equal lines before and after them. Empty if the texts are equal.
pub(super) fn unified(first: &[String], second: &[String]) -> String {
    let lines = lines(first, second);
    let near = |at: usize| {
        let range = at.saturating_sub(CONTEXT_LINES)..lines.len().min(at + CONTEXT_LINES + 1);
        lines[range].iter().any(|line| !matches!(line, Line::Both(_)))
    };
    let mut text = String::new();
    let mut gap = false;
    for (at, line) in lines.iter().enumerate() {
        if !near(at) {
            gap = true;
            continue;
        }
        if gap && !text.is_empty() {
            text.push_str("  ...\n");
        }
        gap = false;
        let (mark, line) = match line {
            Line::Both(line) => (' ', line),
            Line::First(line) => ('-', line),
            Line::Second(line) => ('+', line),
        };
        let _ = writeln!(text, "{mark} {line}");
    }
    text
}

/// A shortest edit from the first text to the second.
pub(super) fn lines<'a>(first: &'a [String], second: &'a [String]) -> Vec<Line<'a>> {
    let head = first.iter().zip(second).take_while(|(a, b)| a == b).count();
    let tail = first[head..].iter().rev().zip(second[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&first[head..first.len() - tail], &second[head..second.len() - tail]);
    let mut result: Vec<_> = first[..head].iter().map(|line| Line::Both(line)).collect();
    if a.len().max(b.len()) > MAX_COMPARED {
        result.extend(a.iter().map(|line| Line::First(line)));
        result.extend(b.iter().map(|line| Line::Second(line)));
    } else {
        middle(a, b, &mut result);
    }
    result.extend(first[first.len() - tail..].iter().map(|line| Line::Both(line)));
    result
}

fn middle<'a>(a: &'a [String], b: &'a [String], result: &mut Vec<Line<'a>>) {
    // common[i][j]: how many lines a[i..] and b[j..] can have in common.
    let mut common = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = if a[i] == b[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            result.push(Line::Both(&a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
            result.push(Line::First(&a[i]));
            i += 1;
        } else {
            result.push(Line::Second(&b[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, MAX_COMPARED, lines, unified};

    /// All texts of up to four lines with three different contents.
    fn texts() -> Vec<Vec<String>> {
        let mut all = vec![Vec::new()];
        let mut last = all.clone();
        for _ in 0..4 {
            last = last
                .iter()
                .flat_map(|text| ["a", "b", "c"].map(|line| [&text[..], &[line.to_owned()]].concat()))
                .collect();
            all.extend(last.clone());
        }
        all
    }

    fn sides(lines: &[Line<'_>]) -> (Vec<String>, Vec<String>) {
        let mut both = (Vec::new(), Vec::new());
        for line in lines {
            if let Line::Both(line) | Line::First(line) = line {
                both.0.push((*line).to_owned());
            }
            if let Line::Both(line) | Line::Second(line) = line {
                both.1.push((*line).to_owned());
            }
        }
        both
    }

    #[test]
    fn the_diff_contains_both_texts() {
        let texts = texts();
        for first in &texts {
            for second in &texts {
                let diff = lines(first, second);
                assert_eq!(sides(&diff), (first.clone(), second.clone()));
                assert_eq!(unified(first, second).is_empty(), first == second);
            }
        }
    }

    #[test]
    fn long_texts_are_not_compared_by_line() {
        let text = |from: usize| (from..=from + MAX_COMPARED).map(|n| n.to_string()).collect::<Vec<_>>();
        let (first, second) = (text(0), text(1_000_000));
        assert_eq!(sides(&lines(&first, &second)), (first.clone(), second.clone()));
    }

    #[test]
    fn changes_have_equal_lines_around_them() {
        let first: Vec<_> = ["1", "2", "3", "4", "5", "6", "7", "8", "9"].map(str::to_owned).into();
        let mut second = first.clone();
        second[0] = "one".into();
        second.remove(8);
        assert_eq!(unified(&first, &second), "- 1\n+ one\n  2\n  3\n  4\n  ...\n  6\n  7\n  8\n- 9\n");
    }
}
