//! Paths of a program as text.

use super::node::{Node, length_bit};
use super::place::Place;

/// The text is not a path: an empty key, a character after `[]` or `{}`, or more than 64 keys at one level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a path into an object: {0:?}")]
pub struct BadPath(pub String);

/// Adds a place at the end of a path.
pub(super) fn insert(root: &mut Node, path: &str, place: Place) -> Result<(), BadPath> {
    let bad = || BadPath(path.to_owned());
    let mut node = root;
    for step in steps(path) {
        let key_length = step.find(['[', '{']).unwrap_or(step.len());
        let (key, mut suffix) = step.split_at(key_length);
        if key.is_empty() {
            return Err(bad());
        }
        node = member(node, key).ok_or_else(bad)?;
        while !suffix.is_empty() {
            node = if let Some(rest) = suffix.strip_prefix("[]") {
                suffix = rest;
                node.element.get_or_insert_default()
            } else {
                suffix = suffix.strip_prefix("{}").ok_or_else(bad)?;
                node.any.get_or_insert_default()
            };
        }
    }
    node.place = Some(place);
    Ok(())
}

/// The path in the managed fields of an object that stands for `path` (`fieldsV1` of structured-merge-diff: each key is
/// `f:` and the field's name).
pub(super) fn owned(path: &str) -> String {
    let mut owned = String::from("metadata.managedFields[].fieldsV1");
    for step in steps(path) {
        owned.push_str(".f:");
        owned.push_str(&step.replace('.', r"\."));
    }
    owned
}

fn member<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    let number = match node.members.iter().position(|(name, _)| **name == *key) {
        Some(number) => number,
        None if node.members.len() == Node::MAX_MEMBERS => return None,
        None => {
            node.lengths |= length_bit(key.len());
            node.members.push((key.into(), Node::default()));
            node.members.len() - 1
        }
    };
    Some(&mut node.members[number].1)
}

/// The keys of a path, unescaped.
fn steps(path: &str) -> Vec<String> {
    let mut steps = vec![String::new()];
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        match character {
            '.' => steps.push(String::new()),
            '\\' => steps.last_mut().expect("begins with one").extend(characters.next()),
            _ => steps.last_mut().expect("begins with one").push(character),
        }
    }
    steps
}
