//! Finds the wanted document in a file.
//!
//! The text is cut at the document markers before YAML is parsed. That is exact: YAML forbids a line that begins with
//! `---` or `...` followed by white space anywhere inside a document, quoted and block scalars included (YAML 1.2.2,
//! production 206, `c-forbidden`).

use serde::Deserialize;

use super::location::{Located, Location};
use super::problem::{Problem, Problems};
use super::yaml;

/// The maximum number of documents. Each is parsed separately.
const MAX_DOCUMENTS: usize = 32;

/// One document, after as many empty lines as the file has lines before it, so that line numbers are those of the file.
#[derive(Debug)]
pub(super) struct Text(pub(super) String);

/// A document and its kind.
struct Document {
    text: Text,
    api_version: Option<Located<String>>,
    kind: Located<String>,
}

/// The two keys that every document has.
#[derive(Deserialize)]
struct Header {
    #[serde(rename = "apiVersion")]
    api_version: Option<Located<String>>,
    kind: Option<Located<String>>,
}

/// Finds the one document of kind `kind`, which must have this `apiVersion`.
///
/// # Errors
/// A document is invalid YAML or has no kind; or there is none, or more than one, of that kind.
pub(super) fn pick(file: &str, api_version: &str, kind: &str) -> Result<Text, Problems> {
    let (documents, mut problems) = read(file);
    let (wanted, others): (Vec<_>, Vec<_>) = documents.into_iter().partition(|document| *document.kind == kind);
    let mut wanted = wanted.into_iter();
    let Some(document) = wanted.next() else {
        // If a document is broken, "there is none" may be wrong.
        if problems.is_empty() {
            let others: Vec<_> = others.iter().map(|other| other.kind.as_str()).collect();
            let only = if others.is_empty() { "" } else { ", only " };
            problems.general(format_args!("the file contains no {kind}{only}{}", others.join(", ")));
        }
        return Err(problems);
    };
    let line = document.kind.location().map_or(0, Location::line);
    for another in wanted {
        problems.at(&another.kind, format_args!("a second {kind}; the first is at line {line}"));
    }
    match &document.api_version {
        Some(version) if **version == api_version => {}
        Some(version) => {
            problems.at(version, format_args!("unknown apiVersion `{version}`; expected {api_version}"));
        }
        None => {
            problems.push(Problem::new(document.text.start(), format_args!("`apiVersion: {api_version}` is missing")));
        }
    }
    if problems.is_empty() { Ok(document.text) } else { Err(problems) }
}

/// The kinds of all documents, in their order.
///
/// # Errors
/// A document is invalid YAML or has no kind.
pub(super) fn kinds(file: &str) -> Result<Vec<Located<String>>, Problems> {
    let (documents, problems) = read(file);
    if problems.is_empty() { Ok(documents.into_iter().map(|document| document.kind).collect()) } else { Err(problems) }
}

/// All documents that have a kind, and the mistakes in the others.
fn read(file: &str) -> (Vec<Document>, Problems) {
    let mut documents = Vec::new();
    let mut problems = Problems::default();
    let mut texts = split(file);
    if texts.len() > MAX_DOCUMENTS {
        texts.truncate(MAX_DOCUMENTS);
        problems.general(format_args!("the file contains more than {MAX_DOCUMENTS} documents"));
    }
    for text in texts {
        match serde_saphyr::from_str_with_options::<Option<Header>>(&text.0, yaml::options()) {
            Ok(None) => {} // nothing but comments
            Ok(Some(Header { api_version, kind: Some(kind) })) => documents.push(Document { text, api_version, kind }),
            Ok(Some(Header { kind: None, .. })) => {
                problems.push(Problem::new(text.start(), "the document has no `kind`"));
            }
            Err(error) => problems.push(yaml::problem(&error)),
        }
    }
    (documents, problems)
}

// === impl Text ===

impl Text {
    /// The first line that is not empty.
    fn start(&self) -> Option<Location> {
        let before = self.0.bytes().take_while(|byte| *byte == b'\n').count();
        Location::new(before as u64 + 1, 1)
    }
}

/// Splits a file into its documents. Directives (`%YAML 1.2`) and comments belong to the document that follows them.
fn split(file: &str) -> Vec<Text> {
    let mut documents = Vec::new();
    let mut current = String::new();
    // Whether the current document has begun: with its marker, or with content.
    let mut begun = false;
    for (n, line) in file.strip_prefix('\u{feff}').unwrap_or(file).split_inclusive('\n').enumerate() {
        if begun && is_marker(line, "---") {
            documents.push(Text(current));
            current = "\n".repeat(n);
            begun = false;
        }
        current.push_str(line);
        if is_marker(line, "...") {
            if begun {
                documents.push(Text(current));
            }
            current = "\n".repeat(n + 1);
            begun = false;
        } else {
            begun |= !line.trim().is_empty() && !line.starts_with(['#', '%']);
        }
        if documents.len() > MAX_DOCUMENTS {
            return documents;
        }
    }
    if begun {
        documents.push(Text(current));
    }
    documents
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}
