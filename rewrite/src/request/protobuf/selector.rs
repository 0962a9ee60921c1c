//! Label selectors over namespaces: confined to those of the virtual cluster.

use std::ops::Range;

use kube_wire::proto::Writer;

use super::super::refusal::{Reason, Refusal};
use super::entry::Entry;
use super::fields::Fields;
use crate::json::{Fault as _, Step};
use crate::name::{CLUSTER_LABEL, HIDDEN_PREFIX, METADATA_NAME_LABEL};

/// `LabelSelector` in apimachinery's meta/v1 generated.proto.
const MATCH_LABELS: u32 = 1;
const MATCH_EXPRESSIONS: u32 = 2;
/// `LabelSelectorRequirement`, ibidem.
const KEY: u32 = 1;
const OPERATOR: u32 = 2;
const VALUES: u32 = 3;

/// A `metav1.LabelSelector`. An absent one selects nothing, or the namespace of the object, and is not handled here.
pub(super) fn namespace_selector(fields: &mut Fields<'_, '_>, range: Range<usize>) -> Result<(), Refusal> {
    let mut expressions = 0;
    let mut is_named = false;
    let mut parts = fields.splice.fields(range.clone());
    while let Some(found) = parts.next(|number| matches!(number, MATCH_LABELS | MATCH_EXPRESSIONS))? {
        if found.number == MATCH_LABELS {
            let result = fields.enter(&found, |fields, range| match_label(fields, &mut is_named, range));
            result.map_err(|refusal| refusal.within(Step::Key("matchLabels")))?;
        } else {
            let result = fields.enter(&found, match_expression);
            let result = result.map_err(|refusal| refusal.within(Step::Element(expressions)));
            result.map_err(|refusal| refusal.within(Step::Key("matchExpressions")))?;
            expressions += 1;
        }
    }
    let mut requirement = Writer::new();
    requirement.bytes(KEY, CLUSTER_LABEL.as_bytes());
    requirement.bytes(OPERATOR, b"In");
    requirement.bytes(VALUES, fields.settings.cluster().as_ref());
    let mut confined = Writer::new();
    confined.bytes(MATCH_EXPRESSIONS, &requirement.into_bytes());
    fields.splice.append(&range, confined);
    Ok(())
}

fn match_label(fields: &mut Fields<'_, '_>, is_named: &mut bool, range: Range<usize>) -> Result<(), Refusal> {
    let entry = Entry::read(fields, range)?;
    let result = if entry.key == METADATA_NAME_LABEL {
        match &entry.value {
            _ if std::mem::replace(is_named, true) => Err(Reason::Duplicate.into()),
            Some(value) => fields.namespace(value),
            None => Ok(()),
        }
    } else if entry.key.starts_with(HIDDEN_PREFIX) {
        Err(Reason::Protected.into())
    } else {
        Ok(())
    };
    result.map_err(|refusal| refusal.within(Step::Key(&entry.key)))
}

fn match_expression(fields: &mut Fields<'_, '_>, range: Range<usize>) -> Result<(), Refusal> {
    let key = fields.look_up(&range, Some(KEY)).map_err(|refusal| refusal.within(Step::Key("key")))?;
    if key.starts_with(HIDDEN_PREFIX.as_bytes()) {
        return Err(Reason::Protected.into());
    }
    if key != METADATA_NAME_LABEL.as_bytes() {
        return Ok(());
    }
    let mut values = fields.splice.fields(range);
    let mut number = 0;
    while let Some(value) = values.next(|number| number == VALUES)? {
        let result = fields.namespace(&value).map_err(|refusal| refusal.within(Step::Element(number)));
        result.map_err(|refusal| refusal.within(Step::Key("values")))?;
        number += 1;
    }
    Ok(())
}
