//! Splits a command line into words, with a small part of the syntax of a shell.

use anyhow::bail;

/// Splits at spaces. `'...'` and `"..."` can contain spaces and the other kind of quote. No other character is special.
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
                        None => bail!("a {char} is not closed"),
                    }
                }
            }
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Quotes a text for a shell.
pub(in crate::compare) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{quote, split};

    #[test]
    fn words_are_split_like_in_a_shell() {
        for line in ["get pods  -n edge", "a 'b c' \"d 'e\" ''", "-p '{\"a\": \"b c\"}'", "x'y 'z", ""] {
            let script = format!("for word in {line}; do printf '%s\\n' \"$word\"; done");
            let shell = Command::new("sh").args(["-c", &script]).output().unwrap();
            let expected: Vec<String> = String::from_utf8(shell.stdout).unwrap().lines().map(str::to_owned).collect();
            assert_eq!(split(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn an_open_quote_is_refused() {
        assert!(split("get 'pods").is_err());
    }

    #[test]
    fn a_shell_reads_the_quoted_text() {
        for text in ["plain", "it's", "a \"b\" $c `d` \\e", ""] {
            let shell = Command::new("sh").args(["-c", &format!("printf %s {}", quote(text))]).output().unwrap();
            assert_eq!(String::from_utf8(shell.stdout).unwrap(), text);
        }
    }
}
