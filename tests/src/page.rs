//! A page of the documentation that shows commands and what they print.
//!
//! A step is in a block of text: a line `$ COMMAND`, and below it the output. A command can continue in the next line after
//! `\`, or have a here-document that ends with `END`. In the output, a line `...` stands for any lines, and `...` at the end of
//! a line for any words.

use std::net::Ipv4Addr;

/// A command of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line of the page, from 1.
    pub line: usize,
    /// For a shell.
    pub command: String,
    /// The lines that the page shows.
    pub output: Vec<String>,
}

/// The steps of a page, in order.
pub fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_block = false;
    let mut is_command = false;
    for (line, text) in (1..).zip(page.lines()) {
        if text.starts_with("```") {
            is_block = text == "```text";
            is_command = false;
        } else if let Some(command) = text.strip_prefix("$ ").filter(|_| is_block) {
            steps.push(Step { line, command: command.to_owned(), output: Vec::new() });
            is_command = continues(command);
        } else if let Some(step) = steps.last_mut().filter(|_| is_block) {
            if is_command {
                step.command = format!("{}\n{text}", step.command);
                is_command = continues(&step.command);
            } else {
                step.output.push(text.to_owned());
            }
        }
    }
    for step in &mut steps {
        let kept = step.output.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        step.output.truncate(kept);
    }
    steps
}

/// Whether the next line is a part of the command.
fn continues(command: &str) -> bool {
    let is_open = command.contains("<<") && !command.lines().skip(1).any(|line| line == "END");
    command.ends_with('\\') || is_open
}

// === impl Step ===

impl Step {
    /// Whether this is the output that the page shows. Ages, dates, versions, addresses of pods, and random parts of names of
    /// pods may differ.
    pub fn shows(&self, output: &str) -> bool {
        let shown: Vec<&str> = self.output.iter().map(String::as_str).collect();
        let found: Vec<&str> = output.trim_end().lines().collect();
        matches(&shown, &found)
    }
}

fn matches(shown: &[&str], found: &[&str]) -> bool {
    match (shown, found) {
        ([], []) => true,
        (["...", rest @ ..], _) => (0..=found.len()).any(|skipped| matches(rest, &found[skipped..])),
        ([line, rest @ ..], [other, others @ ..]) => is_same(line, other) && matches(rest, others),
        _ => false,
    }
}

fn is_same(line: &str, other: &str) -> bool {
    let (words, mut others) = (line.split_whitespace(), other.split_whitespace());
    if let Some(begin) = line.strip_suffix(" ...") {
        let n_words = begin.split_whitespace().count();
        return is_same(begin, &others.by_ref().take(n_words).collect::<Vec<_>>().join(" "));
    }
    words.clone().count() == others.clone().count()
        && words
            .zip(others)
            .all(|(word, other)| word == other || varies(word).is_some_and(|form| Some(form) == varies(other)))
}

/// What remains of a word without the part that varies, if there is one.
fn varies(word: &str) -> Option<String> {
    let is_age = word.starts_with(|char: char| char.is_ascii_digit())
        && word.ends_with(['s', 'm', 'h', 'd', 'y'])
        && word.chars().all(|char| char.is_ascii_digit() || "smhdy".contains(char));
    let is_date = word.len() == "2026-01-31".len() && word.chars().all(|char| char.is_ascii_digit() || char == '-');
    if is_age {
        return Some("age".to_owned());
    }
    if is_date {
        return Some("date".to_owned());
    }
    if word.parse::<Ipv4Addr>().is_ok() {
        return Some("address".to_owned());
    }
    let parts: Vec<&str> = word.trim_end_matches(':').split('.').collect();
    if parts.len() == 3 && parts.iter().all(|part| part.parse::<u16>().is_ok()) {
        return Some("version".to_owned());
    }
    // A pod of a Deployment: NAME-HASH-RANDOM.
    let (name, random) = word.rsplit_once('-')?;
    let (name, hash) = name.rsplit_once('-')?;
    let is_random = |text: &str| text.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit());
    let is_pod = random.len() == 5 && (8..=10).contains(&hash.len()) && is_random(random) && is_random(hash);
    is_pod.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(line: usize, command: &str, output: &[&str]) -> Step {
        Step { line, command: command.to_owned(), output: output.iter().map(|&line| line.to_owned()).collect() }
    }

    #[test]
    fn steps_are_in_blocks_of_text() {
        let page = "$ no\n```sh\n$ no\n```\n```text\n$ one \\\n  two\nout\n\n$ cat <<'END'\na\nEND\na\n\n```\nout\n```text\n$ three\n```\n";
        let expected =
            [step(6, "one \\\n  two", &["out"]), step(10, "cat <<'END'\na\nEND", &["a"]), step(18, "three", &[])];
        assert_eq!(steps(page), expected);
    }

    #[test]
    fn what_varies_may_differ() {
        let shown = step(1, "", &["NAME  AGE", "web-6d6f854445-62wkr  6s 10.244.0.3", "...", "end"]);
        assert!(shown.shows("NAME  AGE\nweb-6d6f854445-abcde  1m5s   10.244.0.9\nend\n\n"));
        assert!(shown.shows("NAME  AGE\nweb-7c5f854445-abcde  1m5s   10.244.0.9\nx\ny\nend"));
        for other in ["web-6d6f854445-62wkr 6s node", "api-6d6f854445-62wkr 6s 10.0.0.1", "web 6s 10.0.0.1", "web-x 6s"]
        {
            assert!(!shown.shows(&format!("NAME AGE\n{other}\nend")), "{other}");
        }
        assert!(!shown.shows("NAME  AGE\nweb-6d6f854445-abcde 6s 10.244.0.9\n"));
        let open = step(1, "", &["a 0.1.0: b ..."]);
        assert!(open.shows("a 0.2.10: b c d") && open.shows("a 0.1.0: b") && !open.shows("a 0.1.0: c d"));
        assert!(step(1, "", &["on 2026-01-31"]).shows("on 2027-02-01") && !step(1, "", &["a"]).shows(""));
    }
}
