//! Compares an example file with the configuration type that reads it: no key of the type may be missing from the file,
//! and each must say whether it is required or what its default is.
//!
//! The type itself is asked which keys it knows: an unknown key is refused with the list of the known ones.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::path::Path;

use ops::config::{Document, Problems, Unread, parse};
use serde::Deserialize;
use serde_json::Value;

const STRANGER: &str = "noSuchKey";

/// The same document as data, without a type. JSON is YAML, so it can be changed, printed and parsed again.
#[derive(Deserialize)]
#[serde(transparent, bound = "")]
struct Plain<T> {
    document: Value,
    #[serde(skip)]
    as_kind: PhantomData<T>,
}

impl<T: Document> Document for Plain<T> {
    const KIND: &'static str = T::KIND;

    fn read(document: Unread<'_>) -> Result<Self, Problems> {
        document.read()
    }
}

/// Reads an example without its type.
pub(crate) fn plain<T: Document>(text: &str) -> Value {
    parse::<Plain<T>>(text, Path::new("example.yaml")).unwrap_or_else(|errors| panic!("{errors}")).document
}

/// What a document may say and does not, and what it does not explain: lines for people, none if all is well.
pub(crate) fn gaps<T: Document>(text: &str) -> Vec<String> {
    let document = plain::<T>(text);
    let mut known: BTreeMap<String, (BTreeSet<String>, Vec<String>)> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for pointer in mappings(&document, String::new()) {
        let path = path_of(&pointer);
        let keys = document.pointer(&pointer).and_then(Value::as_object).expect("a pointer to a mapping");
        used.extend(keys.keys().map(|key| join(&path, key)));
        if let Some(keys) = known_keys::<T>(&document, &pointer) {
            known.entry(path).or_insert_with(|| (keys, Vec::new())).1.push(pointer);
        }
    }
    let comments = comments(text);
    let mut gaps = Vec::new();
    for (parent, (keys, pointers)) in &known {
        for key in keys {
            let path = join(parent, key);
            if !used.contains(&path) {
                gaps.push(format!("{path} is not in the file"));
                continue;
            }
            let comment = comments.get(&path).map_or("", String::as_str);
            let for_all = comments.get(parent).is_some_and(|comment| comment.contains("Defaults:"));
            let told = if pointers.iter().any(|pointer| is_required::<T>(&document, pointer, key)) {
                comment.contains("Required")
            } else {
                for_all || ["Default:", "Defaults:", "Required "].iter().any(|word| comment.contains(word))
            };
            if comment.is_empty() || !told {
                gaps.push(format!("{path} does not say whether it is required, or its default: {comment:?}"));
            }
        }
    }
    gaps
}

/// The keys that the type has in each mapping of the example, by the path of the mapping.
pub(crate) fn known<T: Document>(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let document = plain::<T>(text);
    let keys = |pointer: String| Some((path_of(&pointer), known_keys::<T>(&document, &pointer)?));
    mappings(&document, String::new()).into_iter().filter_map(keys).collect()
}

/// JSON pointers to all mappings.
fn mappings(value: &Value, at: String) -> Vec<String> {
    let children: Vec<_> = match value {
        Value::Object(keys) => keys.iter().map(|(key, child)| (format!("{at}/{key}"), child)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, child)| (format!("{at}/{n}"), child)).collect(),
        _ => Vec::new(),
    };
    let below = children.into_iter().flat_map(|(at, child)| mappings(child, at));
    let own = value.is_object().then_some(at);
    own.into_iter().chain(below).collect()
}

/// A pointer without the indices: all items of a list have one type.
fn path_of(pointer: &str) -> String {
    let names = pointer.split('/').filter(|part| !part.is_empty() && part.parse::<usize>().is_err());
    names.collect::<Vec<_>>().join(".")
}

/// The path of a key in a mapping.
pub(crate) fn join(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

/// The keys that the type has in this mapping; `None` where any key will do, as in a node selector.
fn known_keys<T: Document>(document: &Value, pointer: &str) -> Option<BTreeSet<String>> {
    let mut changed = document.clone();
    let keys = changed.pointer_mut(pointer).and_then(Value::as_object_mut).expect("a pointer to a mapping");
    keys.insert(STRANGER.to_owned(), "x".into());
    let errors = parse::<T>(&changed.to_string(), Path::new("example.yaml")).err()?;
    let message = errors.problems()[0].message();
    if message.starts_with("expected ") {
        // Any key will do, but not this value.
        return None;
    }
    let list = message.strip_prefix(&format!("unknown key `{STRANGER}`; known keys: "));
    let list = list.unwrap_or_else(|| panic!("{pointer}: {errors}"));
    Some(list.split(", ").map(str::to_owned).collect())
}

/// Whether the document cannot be read without this key. What `Document::check` asks for beyond that is conditional.
fn is_required<T: Document>(document: &Value, pointer: &str, key: &str) -> bool {
    let mut changed = document.clone();
    let keys = changed.pointer_mut(pointer).and_then(Value::as_object_mut).expect("a pointer to a mapping");
    let missing = format!("key `{key}` is missing");
    keys.remove(key).is_some()
        && parse::<T>(&changed.to_string(), Path::new("example.yaml"))
            .is_err_and(|errors| errors.problems().iter().any(|problem| problem.message() == missing))
}

/// The comment right above the first occurrence of each key that has a line of its own.
fn comments(text: &str) -> BTreeMap<String, String> {
    let mut comments = BTreeMap::new();
    let mut above = String::new();
    let mut open: Vec<(usize, &str)> = Vec::new();
    for line in text.lines() {
        let content = line.trim_start();
        if let Some(comment) = content.strip_prefix('#') {
            above.push_str(comment);
            continue;
        }
        let content = content.strip_prefix("- ").unwrap_or(content);
        let indent = line.len() - content.len();
        if let Some((key, _)) = content.split_once(':').filter(|(key, _)| key.chars().all(char::is_alphanumeric)) {
            open.retain(|(outer, _)| *outer < indent);
            open.push((indent, key));
            let path = open.iter().map(|(_, key)| *key).collect::<Vec<_>>().join(".");
            comments.entry(path).or_insert_with(|| above.clone());
        }
        above.clear();
    }
    comments
}
