//! Words of a command line: a small part of what a shell does.

use anyhow::bail;

/// Splits at blanks. `'...'` and `"..."` keep blanks, and the other kind of quote, as they are; nothing else is special.
pub(in crate::compare) fn split(line: &str) -> anyhow::Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            ' ' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some(end) if end == char => break,
                        Some(inner) => word.push(inner),
                        None => bail!("a {char} has no end"),
                    }
                }
            }
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    Ok(words)
}

/// One word that a shell reads as `text`.
pub(in crate::compare) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{quote, split};

    #[test]
    fn splits_as_a_shell_does() {
        for line in ["get pods  -n edge", "a 'b c' \"d 'e\" ''", "-p '{\"a\": \"b c\"}'", "x'y 'z", ""] {
            let script = format!("for word in {line}; do printf '%s\\n' \"$word\"; done");
            let shell = Command::new("sh").args(["-c", &script]).output().unwrap();
            let expected: Vec<String> = String::from_utf8(shell.stdout).unwrap().lines().map(str::to_owned).collect();
            assert_eq!(split(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn refuses_an_open_quote() {
        assert!(split("get 'pods").is_err());
    }

    #[test]
    fn quotes_for_a_shell() {
        for text in ["plain", "it's", "a \"b\" $c `d` \\e", ""] {
            let shell = Command::new("sh").args(["-c", &format!("printf %s {}", quote(text))]).output().unwrap();
            assert_eq!(String::from_utf8(shell.stdout).unwrap(), text);
        }
    }
}
