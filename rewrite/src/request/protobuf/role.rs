//! ClusterRoles and ClusterRoleBindings.

use std::ops::Range;

use kube_wire::proto::Writer;

use super::super::refusal::Refusal;
use super::entry::Entry;
use super::fields::Fields;
use crate::name::CLUSTER_LABEL;
use crate::parked::{AGGREGATION_ANNOTATION, parked, parked_annotation};
use crate::protobuf::Message;

/// Adds the label that assigns the object to the virtual cluster to the `metadata` at `range`, and the parked `aggregation` rule.
pub(super) fn finish(fields: &mut Fields<'_, '_>, aggregation: Option<&str>, message: &Message, range: &Range<usize>) {
    let number = |key| message.number(key).expect("ObjectMeta has it, as a test shows");
    let mut missing = Writer::new();
    Entry::write(&mut missing, number("labels"), CLUSTER_LABEL, fields.settings.cluster().as_str());
    if let Some(aggregation) = aggregation {
        Entry::write(&mut missing, number("annotations"), AGGREGATION_ANNOTATION, aggregation);
    }
    fields.splice.append(range, missing);
}

/// A label.
pub(super) fn label(fields: &mut Fields<'_, '_>, entry: &Entry<'_>) -> Result<(), Refusal> {
    entry.not_ours()?;
    entry.rename_key(parked(&entry.key), &mut fields.splice);
    Ok(())
}

/// An annotation.
pub(super) fn annotation(fields: &mut Fields<'_, '_>, entry: &Entry<'_>) -> Result<(), Refusal> {
    entry.not_ours()?;
    if let Some(host) = parked_annotation(&entry.key) {
        entry.rename_key(host, &mut fields.splice);
    }
    Ok(())
}
