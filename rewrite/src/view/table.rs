//! Tables (`meta.k8s.io` Table): the rows that kubectl prints.
//!
//! A row is visible if its object is. Cells are text that the host derived from the object. Only columns that are known to show
//! names change, because a Deployment can have the name of a namespace of the host.

use bytes::Bytes;

use super::filter::{Filter, Verdict};
use super::object::Reader;
use super::settings::Settings;
use crate::Program;
use crate::json::{Cursor, Edits, Malformed, Outcome};
use crate::program::walk;

mod cell;

use cell::Column;

/// The maximum number of columns that are read. The printers of Kubernetes have a dozen.
const MAX_COLUMNS: usize = 256;

/// The content of the columns of a table.
///
/// A watch sends them only with its first event (`NoHeaders` in apiserver's response.go). If that event is hidden, the first
/// visible event must contain them.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    shown: Vec<Column>,
    /// Definitions of a hidden table that the client has not received yet.
    undelivered: Option<Bytes>,
    /// The next value of `undelivered`, once the frame of the last table is complete.
    undelivered_next: Option<Bytes>,
    /// Whether `undelivered_next` is valid.
    has_next: bool,
}

// === impl Columns ===

impl Columns {
    /// Reads `columnDefinitions`. An empty list changes nothing.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if cursor.peek()? != b'[' {
            return cursor.skip();
        }
        let mut columns = Vec::new();
        cursor.array(&mut Edits::new(), |cursor, _, index| {
            let name = cursor.look_up("name")?;
            cursor.skip()?;
            if index < MAX_COLUMNS {
                columns.push(Column::of(name.as_ref()));
            }
            Ok::<_, Malformed>(Outcome::Keep)
        })?;
        if !columns.is_empty() {
            self.shown = columns;
        }
        Ok(())
    }

    /// Handles a whole table, which is the next value. `leaving`: whether to show objects that have left the cluster.
    pub(super) fn table(
        &mut self,
        view: &Settings,
        program: &Program,
        filter: Filter,
        leaving: bool,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Verdict, Malformed> {
        let mut verdict = Verdict::Shown;
        let mut definitions = None;
        cursor.peek()?;
        let open = cursor.at();
        let comma: &[u8] = if cursor.is_empty_container() { b"" } else { b"," };
        cursor.object(edits, |cursor, edits, key| {
            if key.is("columnDefinitions") {
                cursor.peek()?;
                let start = cursor.at();
                let is_empty = cursor.is_empty_container() || cursor.peek()? != b'[';
                self.read(cursor)?;
                definitions = Some((start..cursor.at(), is_empty));
            } else if key.is("rows") && cursor.peek()? == b'[' {
                let mut has_left = false;
                let rows = cursor.array(edits, |cursor, edits, _| {
                    Ok::<_, Malformed>(match self.row(view, program, filter, cursor, edits)? {
                        Verdict::Shown => Outcome::Keep,
                        Verdict::Left if leaving => {
                            has_left = true;
                            Outcome::Keep
                        }
                        Verdict::Foreign | Verdict::Unselected | Verdict::Left => Outcome::Remove,
                    })
                })?;
                if rows.removed > 0 && rows.kept == 0 {
                    verdict = Verdict::Foreign;
                } else if has_left {
                    verdict = Verdict::Left;
                }
            } else {
                cursor.skip()?;
            }
            Ok::<_, Malformed>(Outcome::Keep)
        })?;
        self.has_next = true;
        self.undelivered_next = match (verdict, definitions) {
            (Verdict::Foreign, Some((range, false))) => Some(Bytes::copy_from_slice(cursor.slice(range))),
            (Verdict::Foreign, _) => self.undelivered.clone(),
            (_, Some((_, false))) => None,
            (_, empty) => {
                if let Some(undelivered) = &self.undelivered {
                    match empty {
                        Some((range, _)) => edits.replace(range, undelivered.clone()),
                        None => edits.insert(open + 1, [b"\"columnDefinitions\":", &undelivered[..], comma].concat()),
                    }
                }
                None
            }
        };
        Ok(verdict)
    }

    /// Confirms that the frame of the last table was complete.
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.has_next) {
            self.undelivered = self.undelivered_next.take();
        }
    }

    /// Handles one row, which is the next value.
    pub(super) fn row(
        &self,
        view: &Settings,
        program: &Program,
        filter: Filter,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Verdict, Malformed> {
        let mut reader = Reader::new(view, filter);
        // Changes of an object that is not shown.
        let mut unseen = Edits::new();
        if cursor.peek()? != b'{' {
            cursor.skip()?;
            return Ok(reader.conclude(program, cursor, edits));
        }
        cursor.object(edits, |cursor, edits, key| {
            if key.is("cells") && cursor.peek()? == b'[' {
                cursor.array(edits, |cursor, edits, index| {
                    let column = self.shown.get(index).copied().unwrap_or(Column::Other);
                    column.cell(view, &mut reader, program, cursor, edits)?;
                    Ok::<_, Malformed>(Outcome::Keep)
                })?;
                return Ok(Outcome::Keep);
            }
            if key.is("object") && view.bare_rows {
                cursor.peek()?;
                let start = cursor.at();
                walk(&mut reader, program.root(), cursor, &mut unseen)?;
                edits.replace(start..cursor.at(), Bytes::from_static(b"null"));
                return Ok(Outcome::Keep);
            }
            if key.is("object") {
                return walk(&mut reader, program.root(), cursor, edits);
            }
            cursor.skip()?;
            Ok::<_, Malformed>(Outcome::Keep)
        })?;
        Ok(reader.conclude(program, cursor, if view.bare_rows { &mut unseen } else { edits }))
    }
}

/// Whether the object at the cursor is a `meta.k8s.io` Table, and not a custom resource of that kind.
pub(super) fn is_table(cursor: &Cursor<'_>) -> Result<bool, Malformed> {
    Ok(cursor.look_up("apiVersion")?.is_some_and(|version| version.decode().starts_with("meta.k8s.io/")))
}
