//! Label selectors over namespaces, without the requirement that [`request`](crate::request) has added.

use std::ops::Range;

use super::Unreadable;
use super::entry::{KEY, VALUE};
use super::object::ObjectReader;
use crate::json::Fate;
use crate::name::{CLUSTER_LABEL, METADATA_NAME_LABEL};

/// `LabelSelector` in apimachinery's meta/v1 generated.proto.
const MATCH_LABELS: u32 = 1;
const MATCH_EXPRESSIONS: u32 = 2;
/// `LabelSelectorRequirement`, ibidem. Its key has the number that the key of a map's entry has.
const VALUES: u32 = 3;

// === impl ObjectReader ===

impl ObjectReader<'_, '_> {
    /// A `metav1.LabelSelector`.
    pub(super) fn namespace_selector(&mut self, range: &Range<usize>) -> Result<(), Unreadable> {
        let mut fields = self.splice.fields(range.clone());
        while let Some(found) = fields.next(|number| matches!(number, MATCH_LABELS | MATCH_EXPRESSIONS))? {
            let fate = self.inside(&found, |reader| {
                let key = reader.splice.text(&found.inside, Some(KEY))?;
                if found.number == MATCH_EXPRESSIONS && key == CLUSTER_LABEL.as_bytes() {
                    return Ok(Fate::Remove);
                }
                if key == METADATA_NAME_LABEL.as_bytes() {
                    let names = if found.number == MATCH_LABELS { VALUE } else { VALUES };
                    reader.namespaces(&found.inside, names)?;
                }
                Ok(Fate::Keep)
            })?;
            if fate == Fate::Remove {
                self.splice.remove(&found);
            }
        }
        Ok(())
    }

    /// All fields with this number, which contain names of namespaces.
    pub(super) fn namespaces(&mut self, range: &Range<usize>, number: u32) -> Result<(), Unreadable> {
        let mut names = self.splice.fields(range.clone());
        while let Some(name) = names.next(|other| other == number)? {
            self.namespace(&name);
        }
        Ok(())
    }
}
