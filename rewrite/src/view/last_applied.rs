//! `kubectl.kubernetes.io/last-applied-configuration`, where the host has written it.
//!
//! If kubectl writes it, it has virtual names and does not change. But for server-side apply by kubectl, the API server updates
//! the annotation (`lastAppliedUpdater` in apimachinery's `pkg/util/managedfields/internal/lastappliedupdater.go`) from the
//! object that it received: with names of the host, and with the guard. Then its text is mapped like any other object.

use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;

use crate::Program;
use crate::json::{Cursor, Malformed};

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

    /// The annotation and where it is, if the host has written it.
    pub(super) fn of_host(self, program: &Program, cursor: &Cursor<'_>) -> Option<(Range<usize>, Bytes)> {
        let (text, own) = (self.text?, self.own?);
        // The host prints compact JSON, inside a string.
        let mark = [br#"\""#, key(program).as_bytes(), br#"\":\""#, cursor.slice(own), br#"\""#].concat();
        memmem::find(cursor.slice(text.clone()), &mark)?;
        let mut quoted = Cursor::new(cursor.slice(text.start - 1..text.end + 1), 0, 0);
        let applied = quoted.string().ok()?.decode().into_owned();
        Some((text, Bytes::from(applied)))
    }
}

/// Whether the host has written an annotation, which is not in JSON, of an object that is `own` on the host.
pub(super) fn is_of_host(program: &Program, own: &[u8], text: &[u8]) -> bool {
    let mark = [b"\"", key(program).as_bytes(), b"\":\"", own, b"\""].concat();
    memmem::find(text, &mark).is_some()
}

/// The name that determines the owner of an object.
fn key(program: &Program) -> &'static str {
    if program.is_of_namespaces() || program.is_of_roles() || program.is_of_renamed() { "name" } else { "namespace" }
}
