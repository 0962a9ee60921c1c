//! Label selectors over namespaces, without the requirement that [`request`](crate::request) has added.

use std::ops::Range;

use super::super::error::Unreadable;
use super::entry::{KEY, VALUE};
use super::names::Names;
use crate::name::{CLUSTER_LABEL, METADATA_NAME_LABEL};

/// `LabelSelector` in apimachinery's meta/v1 generated.proto.
const MATCH_LABELS: u32 = 1;
const MATCH_EXPRESSIONS: u32 = 2;
/// `LabelSelectorRequirement`, ibidem. Its key has the number that the key of a map's entry has.
const VALUES: u32 = 3;

/// A `metav1.LabelSelector`.
pub(super) fn namespace_selector(names: &mut Names<'_, '_>, range: &Range<usize>) -> Result<(), Unreadable> {
    let mut fields = names.splice.fields(range.clone());
    while let Some(found) = fields.next(|number| matches!(number, MATCH_LABELS | MATCH_EXPRESSIONS))? {
        let key = names.splice.text(&found.inside, Some(KEY))?;
        if found.number == MATCH_EXPRESSIONS && key == CLUSTER_LABEL.as_bytes() {
            names.splice.remove(&found);
        } else if key == METADATA_NAME_LABEL.as_bytes() {
            let outer = names.splice.enter(&found);
            names.namespaces(&found.inside, if found.number == MATCH_LABELS { VALUE } else { VALUES })?;
            names.splice.leave(&found, outer);
        }
    }
    Ok(())
}
