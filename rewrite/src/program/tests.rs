use super::*;
use crate::json::{Cursor, Edits, Malformed, Outcome};

/// Records visited places.
#[derive(Default)]
struct Recorder {
    visited: Vec<String>,
    duplicates: usize,
}

impl Visitor for Recorder {
    type Error = Malformed;

    fn visit(&mut self, _: Place, _: &Node, cursor: &mut Cursor<'_>, _: &mut Edits) -> Result<Outcome, Malformed> {
        cursor.peek()?;
        let start = cursor.at();
        cursor.skip()?;
        self.visited.push(String::from_utf8(cursor.slice(start..cursor.at()).to_vec()).unwrap());
        Ok(Outcome::Keep)
    }

    fn duplicate(&mut self, _: &Cursor<'_>) -> Result<(), Malformed> {
        self.duplicates += 1;
        Ok(())
    }
}

fn record(paths: &[&str], text: &str) -> Recorder {
    let program = Program::new(paths.iter().map(|path| (*path, Place::Namespace))).unwrap();
    let mut recorder = Recorder::default();
    let mut cursor = Cursor::new(text.as_bytes(), 0, 0);
    walk(&mut recorder, program.root(), &mut cursor, &mut Edits::new()).unwrap();
    cursor.finish().unwrap();
    recorder
}

#[test]
fn only_the_paths_are_visited() {
    let text = r#"{"a":{"b":[{"c":1},{"d":2},[3],{"c":4}],"c":5},"b":6,"m":{"x":7,"y":{"z":8}}}"#;
    assert_eq!(record(&["a.b[].c", "m{}"], text).visited, ["1", "4", "7", r#"{"z":8}"#]);
}

#[test]
fn keys_are_compared_decoded_and_with_their_case() {
    let text = r#"{"n\u0061me":1,"Name":2,"ca.crt":3,"n\u0041me":4}"#;
    assert_eq!(record(&["name", r"ca\.crt"], text).visited, ["1", "3"]);
}

#[test]
fn values_of_another_type_are_skipped() {
    assert_eq!(record(&["a.b[].c"], r#"{"a":[{"b":1}]}"#).visited, Vec::<String>::new());
    assert_eq!(record(&["a.b[].c"], r#"{"a":{"b":{"c":1}}}"#).visited, Vec::<String>::new());
}

#[test]
fn duplicate_members_are_reported() {
    let recorder = record(&["a.b"], r#"{"a":{"b":1,"b":2},"x":1,"x":2,"\u0061":{"b":3}}"#);
    assert_eq!((recorder.visited.len(), recorder.duplicates), (3, 2));
}

#[test]
fn invalid_paths_are_refused() {
    for bad in ["", "a..b", "a[b", "a{}b", "[]"] {
        assert!(Program::new([(bad, Place::Namespace)]).is_err(), "{bad:?}");
    }
}
