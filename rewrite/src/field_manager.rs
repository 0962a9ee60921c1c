//! Finds names of field managers in which an API server would find many errors.
//!
//! `ValidateFieldManager` in apimachinery's `pkg/apis/meta/v1/validation` makes an error for each character that is not
//! printable, and quotes the whole name in each of them.

use crate::json::{Cursor, DEEPEST, Edits, Malformed, Outcome};
use crate::protobuf::fields;

/// The maximum length of a name, in bytes (`FieldManagerMaxLength` in the same file).
pub const MAX_LENGTH: usize = 128;

/// The maximum number of characters in all names of an object that might not be printable: control characters, and all
/// characters outside ASCII.
const MAX_UNPRINTABLE: usize = 512;

/// The fields of a name in protobuf: `metadata`, `managedFields` and `manager` (apimachinery's
/// `pkg/apis/meta/v1/generated.proto`).
const IN_PROTOBUF: [i32; 3] = [1, 17, 1];

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// It is longer than [`MAX_LENGTH`].
    TooLong,
    /// The names of the object contain too many characters that might not be printable.
    NotPrintable,
}

/// What was found in the names so far.
#[derive(Debug, Default)]
struct Found {
    /// The number of characters that might not be printable so far.
    unprintable: usize,
    defect: Option<Defect>,
}

/// What is wrong with a name in any `managedFields` of an object, at any depth. An object that is embedded in a custom object
/// also has this field.
pub fn in_json(object: &[u8]) -> Result<Option<Defect>, Malformed> {
    let mut found = Found::default();
    let may_have_names = memchr::memmem::find(object, b"\"manager\"").is_some();
    // A JSON text may write this key with escapes.
    if may_have_names || memchr::memmem::find(object, b"\\u").is_some() {
        found.visit(&mut Cursor::new(object, 0, 0), false, 0)?;
    }
    Ok(found.defect)
}

/// What is wrong with a name in the managed fields of an object.
pub fn in_protobuf(object: &[u8]) -> Option<Defect> {
    let mut found = Found::default();
    found.visit_message(object, &IN_PROTOBUF);
    found.defect
}

// === impl Found ===

impl Found {
    fn add(&mut self, name: &str) {
        self.unprintable += name.chars().filter(|character| !character.is_ascii() || character.is_control()).count();
        if name.len() > MAX_LENGTH {
            self.defect = self.defect.or(Some(Defect::TooLong));
        } else if self.unprintable > MAX_UNPRINTABLE {
            self.defect = self.defect.or(Some(Defect::NotPrintable));
        }
    }

    /// Visits a value. `is_managed` if it is at a key `managedFields`, or an element there.
    fn visit(&mut self, cursor: &mut Cursor<'_>, is_managed: bool, depth: usize) -> Result<(), Malformed> {
        match cursor.peek()? {
            b'{' if depth < DEEPEST => {
                cursor.object(&mut Edits::new(), |cursor, _, key| {
                    if is_managed && key.is("manager") && cursor.peek()? == b'"' {
                        self.add(&cursor.string()?.decode());
                    } else {
                        self.visit(cursor, key.is("managedFields"), depth + 1)?;
                    }
                    Ok::<_, Malformed>(Outcome::Keep)
                })?;
            }
            b'[' if depth < DEEPEST => {
                cursor.array(&mut Edits::new(), |cursor, _, _| {
                    self.visit(cursor, is_managed, depth + 1)?;
                    Ok::<_, Malformed>(Outcome::Keep)
                })?;
            }
            _ => cursor.skip()?,
        }
        Ok(())
    }

    fn visit_message(&mut self, message: &[u8], path: &[i32]) {
        let Some((number, inside)) = path.split_first() else { return self.add(&String::from_utf8_lossy(message)) };
        for content in fields(message).filter(|field| field.number == *number).filter_map(|field| field.content) {
            self.visit_message(content, inside);
        }
    }
}

#[cfg(test)]
mod tests {
    use kube_wire::proto::Writer;
    use serde_json::{Value, json};

    use super::*;

    fn entries(names: &[&str]) -> Value {
        names.iter().map(|name| json!({"manager": name, "operation": "Update"})).collect()
    }

    fn field(number: u32, content: &[u8]) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.bytes(number, content);
        writer.into_bytes()
    }

    #[test]
    fn names_are_short_and_printable() {
        let long = "a".repeat(MAX_LENGTH + 1);
        let accents = "é".repeat(60);
        let many = [accents.as_str(); 9];
        let controls = "\u{1}".repeat(MAX_LENGTH);
        let controls = [controls.as_str(); 5];
        for (names, wanted) in [
            (&["kubectl", "a b"][..], None),
            (&[&long[1..]], None),
            (&["a", &long], Some(Defect::TooLong)),
            // The host reports an error for each of these few characters.
            (&["a\u{1}", "\u{7f}"], None),
            (&controls[..4], None),
            (&controls, Some(Defect::NotPrintable)),
            (&many[1..], None),
            (&many, Some(Defect::NotPrintable)),
        ] {
            let managed = json!({"metadata": {"managedFields": entries(names)}});
            assert_eq!(in_json(managed.to_string().as_bytes()), Ok(wanted), "{names:?}");
            // In an object that is embedded in a custom one.
            let embedded = json!({"spec": {"list": [managed]}}).to_string().replace("manager", "\\u006danager");
            assert_eq!(in_json(embedded.as_bytes()), Ok(wanted), "{names:?}");
            let elsewhere = json!({"spec": {"managers": entries(names)}}).to_string();
            assert_eq!(in_json(elsewhere.as_bytes()), Ok(None));
            let entries: Vec<u8> = names.iter().flat_map(|name| field(17, &field(1, name.as_bytes()))).collect();
            let object = [field(2, b"a"), field(1, &[field(1, b"n"), entries].concat())].concat();
            assert_eq!(in_protobuf(&object), wanted, "{names:?}");
        }
    }
}
