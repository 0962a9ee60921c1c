//! `kubectl.kubernetes.io/last-applied-configuration`, where the host has written it.
//!
//! If kubectl writes it, it has virtual names and does not change. But for server-side apply by kubectl, the API server updates
//! the annotation (`lastAppliedUpdater` in apimachinery's `pkg/util/managedfields/internal/lastappliedupdater.go`) from the
//! object that it received: with names of the host, and with the guard. Then its text is mapped like any other object.

use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;

use super::object::{Reader, unquoted};
use super::{Filter, Verdict, View};
use crate::Program;
use crate::json::{Cursor, Edits, Malformed};
use crate::program::walk;

/// The annotation, if any. The name of the object determines whether the host has written it.
#[derive(Default)]
pub(super) struct LastApplied {
    text: Option<Range<usize>>,
    /// The namespace of the object, or its name if it is a Namespace.
    own: Option<Range<usize>>,
}

// === impl LastApplied ===

impl LastApplied {
    /// Records the annotation, which is the next value, and skips it.
    pub(super) fn note(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if cursor.peek()? != b'"' {
            return cursor.skip();
        }
        self.text = Some(cursor.string()?.range());
        Ok(())
    }

    /// Records the host name that determines the owner of the object: the next value. Consumes nothing.
    pub(super) fn belongs_to(&mut self, cursor: &Cursor<'_>) -> Result<(), Malformed> {
        let mut ahead = cursor.clone();
        if ahead.peek()? == b'"' {
            self.own = Some(ahead.string()?.range());
        }
        Ok(())
    }

    /// Shows the annotation, if the host has written it.
    pub(super) fn conclude(self, view: &View, program: &Program, cursor: &Cursor<'_>, edits: &mut Edits) {
        let (Some(text), Some(own)) = (self.text, self.own) else { return };
        // The host prints compact JSON, inside a string.
        let mark = [br#"\""#, key(program).as_bytes(), br#"\":\""#, cursor.slice(own), br#"\""#].concat();
        if memmem::find(cursor.slice(text.clone()), &mark).is_none() {
            return;
        }
        let mut quoted = Cursor::new(cursor.slice(text.start - 1..text.end + 1), 0, 0);
        let Ok(applied) = quoted.string().map(|text| text.decode().into_owned()) else { return };
        if let Some(shown) = shown(view, program, &Bytes::from(applied)) {
            edits.replace(text, unquoted(&shown));
        }
    }
}

/// The name that determines the owner of an object.
fn key(program: &Program) -> &'static str {
    if program.is_of_namespaces() || program.is_of_roles() || program.is_of_renamed() { "name" } else { "namespace" }
}

/// An annotation as it is in protobuf, of an object that is `own` on the host. Nothing if it stays as it is.
pub(super) fn plain(view: &View, program: &Program, own: &[u8], text: &[u8]) -> Option<Bytes> {
    let mark = [b"\"", key(program).as_bytes(), b"\":\"", own, b"\""].concat();
    memmem::find(text, &mark)?;
    shown(view, program, &Bytes::copy_from_slice(text)).map(Bytes::from)
}

/// An applied object as the virtual cluster sees it. `None` if the text is not an object.
fn shown(view: &View, program: &Program, applied: &Bytes) -> Option<String> {
    let filter = match program {
        program if program.is_of_namespaces() => Filter::ByName,
        program if program.is_of_roles() || program.is_of_renamed() => Filter::Everything,
        _ => Filter::ByNamespace,
    };
    let mut cursor = Cursor::new(applied, 0, 0);
    let mut edits = Edits::new();
    let mut inner = Reader::new(view, filter).within_annotation();
    walk(&mut inner, program.root(), &mut cursor, &mut edits).ok()?;
    cursor.finish().ok()?;
    if inner.conclude(program, &cursor, &mut edits) != Verdict::Shown {
        return None;
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    edits.splice(applied, 0..applied.len(), &mut pieces);
    String::from_utf8(pieces.concat()).ok()
}
