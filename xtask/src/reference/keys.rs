//! The keys of an annotated YAML file, and the comments above them.
//!
//! This is no parser of YAML: it knows the forms that the examples use, and refuses others. A comment belongs to the line
//! directly below it. A line `# === ...` is for those who edit the file, and belongs to no key.

/// What an example says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Example {
    /// The comments that belong to no key, one paragraph or more.
    pub(super) preface: Vec<String>,
    /// In the order of the file.
    pub(super) keys: Vec<Key>,
}

/// A key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Such as `clusters[].name`.
    pub(super) path: String,
    /// One, or more if a list has several annotated items.
    pub(super) parts: Vec<Part>,
}

/// A place of a key in the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) comment: Vec<String>,
    /// The key and its value; none if the value is a map, or a list of maps.
    pub(super) lines: Vec<String>,
}

/// A line of the file with a key.
struct Line<'a> {
    /// The column of the key.
    column: usize,
    is_item: bool,
    name: &'a str,
    has_value: bool,
}

/// Why a file cannot be read, and in which line, from 1.
type Problem = (usize, String);

// === impl Example ===

impl Example {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let mut example = Self::default();
        let mut comment: Vec<String> = Vec::new();
        let mut open: Vec<(usize, String)> = Vec::new();
        // Whether the previous line had a key.
        let mut is_next = false;
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.trim_start();
            if let Some(words) = code.strip_prefix('#') {
                comment.push(words.strip_prefix(' ').unwrap_or(words).to_owned());
                is_next = false;
            } else if code.is_empty() {
                example.end_comment(&mut comment);
                is_next = false;
            } else if let Some(found) = Line::read(line) {
                let path = path_of(&found, &mut open);
                example.add(path, std::mem::take(&mut comment), &found, code, is_next);
                is_next = true;
            } else if code.starts_with("- ") {
                // An item without keys of its own. One with a comment is a second example of what is above it.
                if std::mem::take(&mut comment).is_empty() {
                    let part = example.last_part().ok_or_else(|| (number, "an item without a list".to_owned()))?;
                    part.lines.push(code.to_owned());
                }
            } else {
                return Err((number, format!("neither a comment, nor a key, nor an item: {code}")));
            }
        }
        example.complete()
    }

    /// Ends a comment that belongs to no key.
    fn end_comment(&mut self, comment: &mut Vec<String>) {
        let words = std::mem::take(comment);
        if words.first().is_some_and(|first| !first.starts_with("===")) {
            if !self.preface.is_empty() {
                self.preface.push(String::new());
            }
            self.preface.extend(words);
        }
    }

    fn add(&mut self, path: String, comment: Vec<String>, found: &Line<'_>, code: &str, is_next: bool) {
        let line = code.strip_prefix("- ").unwrap_or(code).to_owned();
        let known = self.keys.iter().position(|key| key.path == path);
        // `kind` below `apiVersion`: one comment for both.
        let is_joined = comment.is_empty() && known.is_none() && is_next && found.column == 0 && !found.is_item;
        if is_joined {
            self.last_part().into_iter().for_each(|part| part.lines.push(line.clone()));
            return;
        }
        let lines = if found.has_value { vec![line] } else { Vec::new() };
        let part = Part { comment, lines };
        match known {
            None => self.keys.push(Key { path, parts: vec![part] }),
            Some(known) if !part.comment.is_empty() => self.keys[known].parts.push(part),
            Some(_) => {}
        }
    }

    fn last_part(&mut self) -> Option<&mut Part> {
        self.keys.last_mut()?.parts.last_mut()
    }

    /// Every key must have a comment. The line of a list of plain items comes before them.
    fn complete(mut self) -> Result<Self, Problem> {
        for key in &mut self.keys {
            for part in &mut key.parts {
                if part.comment.is_empty() {
                    return Err((1, format!("`{}` has no comment", key.path)));
                }
                if part.lines.first().is_some_and(|line| line.starts_with("- ")) {
                    let name = key.path.rsplit('.').next().unwrap_or(&key.path);
                    part.lines.insert(0, format!("{name}:"));
                }
            }
        }
        Ok(self)
    }
}

// === impl Key ===

impl Key {
    pub(super) fn is_nested(&self) -> bool {
        self.path.contains('.')
    }
}

// === impl Line ===

impl<'a> Line<'a> {
    /// Reads a line `KEY:`, `KEY: VALUE` or `- KEY: VALUE`.
    fn read(line: &'a str) -> Option<Self> {
        let code = line.trim_start();
        let is_item = code.starts_with("- ");
        let code = code.strip_prefix("- ").unwrap_or(code);
        let (name, value) = code.split_once(':')?;
        let is_name = !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric());
        let is_key = is_name && (value.is_empty() || value.starts_with(' '));
        is_key.then(|| Self { column: line.len() - code.len(), is_item, name, has_value: !value.is_empty() })
    }
}

/// The path of a key below the keys that are open, which end where their column is reached again.
fn path_of(found: &Line<'_>, open: &mut Vec<(usize, String)>) -> String {
    // The dash of an item is two columns to the left of its first key, and may be in the column of the list.
    let is_above = |column: usize| if found.is_item { column + 2 <= found.column } else { column < found.column };
    while open.last().is_some_and(|(column, _)| !is_above(*column)) {
        open.pop();
    }
    let path = match open.last() {
        None => found.name.to_owned(),
        Some((_, above)) if found.is_item => format!("{above}[].{}", found.name),
        Some((_, above)) => format!("{above}.{}", found.name),
    };
    // The keys of an item are beside its first one.
    if found.is_item {
        let list = open.last().map(|(_, above)| format!("{above}[]")).unwrap_or_default();
        open.push((found.column - 1, list));
    }
    open.push((found.column, path.clone()));
    path
}

#[cfg(test)]
mod tests;
