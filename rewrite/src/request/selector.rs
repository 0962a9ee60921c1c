//! Label selectors over namespaces: confined to those of the virtual cluster.
//!
//! `{}` selects all namespaces, so each selector gets an additional requirement. This is also correct for a merge patch: all
//! selectors are in lists, which a merge patch replaces as a whole (RFC 7396), except in admission policies, which virtual
//! clusters cannot write.

use super::object::Writer;
use super::{Reason, Refusal};
use crate::json::{Cursor, Edits, Fate, quoted};
use crate::name::{CLUSTER_LABEL, HIDDEN_PREFIX, METADATA_NAME_LABEL};

// === impl Writer ===

impl Writer<'_> {
    /// A `metav1.LabelSelector`. An absent or `null` one selects nothing, or the namespace of the object, and stays unchanged.
    pub(super) fn namespace_selector(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        if cursor.peek()? != b'{' {
            return Ok(cursor.skip()?);
        }
        let requirement =
            format!(r#"{{"key":"{CLUSTER_LABEL}","operator":"In","values":["{}"]}}"#, self.request.mapping.cluster());
        let open = cursor.at();
        let is_empty = cursor.is_empty_container();
        let mut confined = false;
        self.members(&["matchLabels", "matchExpressions"], cursor, edits, |writer, key, cursor, edits| match key {
            "matchLabels" => writer.match_labels(cursor, edits),
            "matchExpressions" => {
                confined = true;
                writer.match_expressions(&requirement, cursor, edits)
            }
            _ => Ok(cursor.skip()?),
        })?;
        if !confined {
            let comma = if is_empty { "" } else { "," };
            edits.insert(open + 1, format!(r#""matchExpressions":[{requirement}]{comma}"#));
        }
        Ok(())
    }

    fn match_labels(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        self.members(&[METADATA_NAME_LABEL], cursor, edits, |writer, key, cursor, edits| match key {
            METADATA_NAME_LABEL => writer.namespace(cursor, edits),
            _ if key.starts_with(HIDDEN_PREFIX) => Err(Reason::Protected.into()),
            _ => Ok(cursor.skip()?),
        })
    }

    fn match_expressions(
        &mut self,
        requirement: &str,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Refusal> {
        match cursor.peek()? {
            b'[' => {}
            b'n' => {
                let start = cursor.at();
                cursor.skip()?;
                edits.replace(start..cursor.at(), format!("[{requirement}]").into());
                return Ok(());
            }
            _ => return Err(Reason::WrongType { expected: "an array" }.into()),
        }
        let extent = cursor.array(edits, |cursor, edits, _| {
            let key = cursor.look_up("key")?;
            if key.is_some_and(|key| key.decode().starts_with(HIDDEN_PREFIX)) {
                return Err(Refusal::from(Reason::Protected));
            }
            let by_name = key.is_some_and(|key| key.is(METADATA_NAME_LABEL));
            self.members(&["key", "values"], cursor, edits, |writer, key, cursor, edits| {
                if key == "values" && by_name && cursor.peek()? == b'[' {
                    cursor.array(edits, |cursor, edits, _| {
                        writer.namespace(cursor, edits)?;
                        Ok::<_, Refusal>(Fate::Keep)
                    })?;
                    return Ok(());
                }
                Ok(cursor.skip()?)
            })?;
            Ok(Fate::Keep)
        })?;
        let comma = if extent.kept == 0 { "" } else { "," };
        edits.insert(extent.close, format!("{comma}{requirement}"));
        Ok(())
    }
}

/// The members of an object, given as (key, value) strings.
pub(super) fn members_of<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members: Vec<_> =
        entries.into_iter().map(|(key, value)| format!("{}:{}", quoted(key), quoted(value))).collect();
    members.join(",")
}
