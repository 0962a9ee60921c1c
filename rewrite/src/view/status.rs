//! `metav1.Status` in a response to a request for something else.

use super::filter::{Filter, Verdict};
use super::object::Reader;
use super::settings::Settings;
use crate::Program;
use crate::json::{Cursor, Edits, Malformed};
use crate::program::walk;

/// Whether the object at the cursor, whose `kind` is `Status`, is a `metav1.Status`, and not a custom resource of that kind.
pub(super) fn is_status(cursor: &Cursor<'_>) -> Result<bool, Malformed> {
    Ok(cursor.look_up("apiVersion")?.is_some_and(|version| version.is("v1")))
}

/// Shows the Status that is the next value. It is visible to everyone.
pub(super) fn status(view: &Settings, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Verdict, Malformed> {
    let mut reader = Reader::new(view, Filter::Everything);
    let program = Program::status();
    walk(&mut reader, program.root(), cursor, edits)?;
    Ok(reader.conclude(&program, cursor, edits))
}
