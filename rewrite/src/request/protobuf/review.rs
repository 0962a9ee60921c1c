//! Access reviews.

use std::ops::Range;

use kube_wire::proto::Writer;

use super::super::refusal::Refusal;
use super::fields::Fields;
use crate::protobuf::Found;

/// The namespace of a review, in the field with this number.
pub(super) fn namespace(
    fields: &mut Fields<'_, '_>,
    found: Option<&Found>,
    number: u32,
    range: &Range<usize>,
) -> Result<(), Refusal> {
    match (found, &fields.settings.names.root) {
        (Some(found), _) if !found.is_empty() => {
            fields.report.about.namespace = Some(fields.text_of(found));
            fields.review_namespace(found)?;
        }
        (Some(found), Some(root)) => fields.splice.replace(found, root.to_bytes()),
        (None, Some(root)) => {
            let mut namespace = Writer::new();
            namespace.bytes(number, root.as_ref());
            fields.splice.append(range, namespace);
        }
        (Some(_) | None, None) => {}
    }
    Ok(())
}

/// The name of a namespace in a review.
pub(super) fn namespace_name(fields: &mut Fields<'_, '_>, found: Option<&Found>) -> Result<(), Refusal> {
    let Some(found) = found.filter(|found| !found.is_empty()) else { return Ok(()) };
    let name = fields.text_of(found);
    fields.splice.replace(found, fields.settings.names.review_name(&name)?.into());
    fields.report.about.name = Some(name);
    Ok(())
}

/// The name of a ClusterRole in a review.
pub(super) fn role_name(fields: &mut Fields<'_, '_>, found: Option<&Found>) {
    let Some(found) = found.filter(|found| !found.is_empty()) else { return };
    let name = fields.text_of(found);
    fields.splice.replace(found, fields.settings.names.review_role(&name).into());
    fields.report.about.name = Some(name);
}
