//! Which metrics and labels an expression of PromQL names.

use std::collections::BTreeSet;

/// The names in an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Each metric, with the labels that its selector compares. The name is empty if the selector has none.
    pub selectors: Vec<(String, BTreeSet<String>)>,
    /// The labels by which the expression groups or joins.
    pub grouped: BTreeSet<String>,
}

/// Operators that are words. `by` and others take a list of labels.
const OPERATORS: [&str; 5] = ["and", "bool", "offset", "or", "unless"];
const GROUPING: [&str; 6] = ["by", "group_left", "group_right", "ignoring", "on", "without"];

/// Finds the names. The expression must be valid: Prometheus checks that.
pub fn names(expr: &str) -> Names {
    let mut names = Names::default();
    let mut rest = expr;
    while let Some(first) = rest.chars().next() {
        if is_start(first) {
            let (word, after) = word(rest);
            rest = after.trim_start();
            if GROUPING.contains(&word) {
                let (list, after) = enclosed(rest, '(', ')');
                names.grouped.extend(words(list));
                rest = after;
            } else if !OPERATORS.contains(&word) && !is_function(rest) {
                let (matchers, after) = enclosed(rest, '{', '}');
                names.selectors.push((word.to_owned(), labels_of(matchers)));
                rest = after;
            }
        } else {
            rest = match first {
                '"' | '\'' | '`' => after_string(rest),
                '[' => enclosed(rest, '[', ']').1,
                // A selector without a name.
                '{' => {
                    let (matchers, after) = enclosed(rest, '{', '}');
                    names.selectors.push((String::new(), labels_of(matchers)));
                    after
                }
                // A number, a duration (5m), or a variable ($x).
                '$' | '0'..='9' => {
                    rest[1..].trim_start_matches(|char| is_start(char) || char.is_ascii_digit() || char == '.')
                }
                other => &rest[other.len_utf8()..],
            };
        }
    }
    names
}

/// Whether a name before `rest` is that of a function or aggregation.
fn is_function(rest: &str) -> bool {
    rest.starts_with('(') || ["by", "without"].contains(&word(rest).0)
}

fn is_start(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_' || char == ':'
}

fn word(text: &str) -> (&str, &str) {
    let end = text.find(|char: char| !is_start(char) && !char.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// The text between brackets at the beginning, and what follows. Without brackets, the first text is empty.
fn enclosed(text: &str, open: char, close: char) -> (&str, &str) {
    let Some(inner) = text.strip_prefix(open) else { return ("", text) };
    let mut rest = inner;
    while let Some(first) = rest.chars().next() {
        if first == close {
            return (&inner[..inner.len() - rest.len()], &rest[close.len_utf8()..]);
        }
        rest = if first == '"' || first == '\'' { after_string(rest) } else { &rest[first.len_utf8()..] };
    }
    (inner, "")
}

/// What follows the string at the beginning.
fn after_string(text: &str) -> &str {
    let mut chars = text.chars();
    let quote = chars.next();
    while let Some(char) = chars.next() {
        if char == '\\' {
            chars.next();
        } else if Some(char) == quote {
            break;
        }
    }
    chars.as_str()
}

fn words(list: &str) -> BTreeSet<String> {
    list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// The labels of matchers such as `a="b", c=~"d"`.
fn labels_of(matchers: &str) -> BTreeSet<String> {
    let mut labels = BTreeSet::new();
    let mut rest = matchers;
    while let Some(first) = rest.chars().next() {
        rest = if is_start(first) {
            let (label, after) = word(rest);
            labels.insert(label.to_owned());
            after
        } else if first == '"' || first == '\'' {
            after_string(rest)
        } else {
            &rest[first.len_utf8()..]
        };
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(expr: &str) -> (Vec<String>, Vec<String>) {
        let names = names(expr);
        let selector = |(metric, labels): (String, BTreeSet<String>)| {
            format!("{metric}{:?}", labels.into_iter().collect::<Vec<_>>())
        };
        (names.selectors.into_iter().map(selector).collect(), names.grouped.into_iter().collect())
    }

    #[test]
    fn metrics_and_labels_are_found() {
        for (expr, selectors, grouped) in [
            ("up", &["up[]"][..], &[][..]),
            (r#"absent(up{job="a}b"} == 1)"#, &[r#"up["job"]"#], &[]),
            (
                r#"sum by (cluster, le) (rate(a_bucket{verb=~"get|write", code!='5"'}[5m] offset 1h)) / 5e3 > 0.5"#,
                &[r#"a_bucket["code", "verb"]"#],
                &["cluster", "le"],
            ),
            (
                "histogram_quantile(0.99, sum(rate(a[$__rate_interval])) without (x)) and on (y) b unless c",
                &["a[]", "b[]", "c[]"],
                &["x", "y"],
            ),
            ("a < on (job) group_left () (count(b) - 1) or vector(0)", &["a[]", "b[]"], &["job"]),
            (r#"topk(3, {job="a"}) + label_replace(a, "b", "$1", "c", "(.*)")"#, &[r#"["job"]"#, "a[]"], &[]),
        ] {
            let expected = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            assert_eq!(found(expr), (expected(selectors), expected(grouped)), "{expr}");
        }
    }

    #[test]
    fn broken_expressions_end() {
        for expr in ["a{b=\"", "a[", "sum by (", "\"\\", "a{\u{e9}}", "5m5"] {
            let _ = names(expr);
        }
    }
}
