//! Comments of a configuration file as Markdown.

/// The maximum width of a line.
const WIDTH: usize = 128;

/// The paragraphs of a comment, each after an empty line.
///
/// Lines that are indented are literal text. A line that begins with a lower-case word and a colon begins an item of a list.
pub(super) fn markdown(comment: &[String]) -> String {
    let mut page = String::new();
    for paragraph in comment.split(String::is_empty).filter(|paragraph| !paragraph.is_empty()) {
        page.push('\n');
        page.push_str(&block(paragraph));
    }
    page
}

/// A comment, and below it the lines of the file.
pub(super) fn section(comment: &[String], lines: &[String]) -> String {
    let mut section = markdown(comment).trim_start_matches('\n').to_owned();
    if !lines.is_empty() {
        section.extend(["\n```yaml\n", &lines.join("\n"), "\n```\n"]);
    }
    section
}

/// The text in lines of limited width, of which all but the first begin with `indent`.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines.push('\n');
            lines.push_str(indent);
            width = indent.len();
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

fn block(paragraph: &[String]) -> String {
    let is_literal = |line: &String| line.starts_with(' ');
    if paragraph.iter().all(is_literal) {
        let lines: Vec<&str> = paragraph.iter().map(|line| line.trim()).collect();
        return format!("```text\n{}\n```\n", lines.join("\n"));
    }
    let mut texts = vec![String::new()];
    for line in paragraph {
        match line.split_once(": ") {
            Some((name, rest)) if !name.is_empty() && name.chars().all(|char| char.is_ascii_lowercase()) => {
                texts.push(format!("- `{name}`: {rest}"));
            }
            _ => texts.iter_mut().last().into_iter().for_each(|text| {
                text.push(' ');
                text.push_str(line);
            }),
        }
    }
    let mut blocks = String::new();
    for (index, text) in texts.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
        if index == 1 && !blocks.is_empty() {
            blocks.push('\n');
        }
        let indent = if index > 0 { "  " } else { "" };
        blocks.push_str(&wrapped(&linked(&escaped(text)), indent));
        blocks.push('\n');
    }
    blocks
}

/// Outside of code, `<` and `*` would have a meaning.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            escaped.push('`');
        }
        match index % 2 {
            0 => escaped.push_str(&part.replace('<', "\\<").replace('*', "\\*")),
            _ => escaped.push_str(part),
        }
    }
    escaped
}

/// Pages of the book are linked.
fn linked(text: &str) -> String {
    let mut linked = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("docs/") {
        linked.push_str(before);
        let end = after.find(".md").map(|at| at + ".md".len());
        let name = end.map(|end| &after[..end]).filter(|name| !name.contains([' ', '/']));
        if let Some(name) = name {
            linked.extend(["[", name, "](", name, ")"]);
            rest = &after[name.len()..];
        } else {
            linked.push_str("docs/");
            rest = after;
        }
    }
    linked + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn paragraphs_literal_text_and_lists() {
        let comment = lines("One\nline.\n\n   a  b\n   c\n\nValues:\nread: they read.\n  More.\nhidden: nobody.");
        let expected =
            "\nOne line.\n\n```text\na  b\nc\n```\n\nValues:\n\n- `read`: they read. More.\n- `hidden`: nobody.\n";
        assert_eq!(markdown(&comment), expected);
    }

    #[test]
    fn the_text_keeps_its_meaning() {
        let comment = lines("<name> and `<name>`, a * and `*`. See docs/limits.md, and docs/ alone.");
        let expected = "\\<name> and `<name>`, a \\* and `*`. See [limits.md](limits.md), and docs/ alone.\n";
        assert_eq!(section(&comment, &[]), expected);
        assert_eq!(section(&lines("A."), &lines("a: 1")), "A.\n\n```yaml\na: 1\n```\n");
    }

    #[test]
    fn lines_are_wrapped() {
        let text = wrapped(&"word ".repeat(60), "  ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH && !line.ends_with(' ')));
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(text.split_whitespace().count(), 60);
    }
}
