//! ClusterRoles.

use std::ops::Range;

use bytes::Bytes;
use kube_wire::proto::{Reader, WireError, Writer};

use super::map::Entry;
use super::{Found, Mapper, Message};
use crate::json::{Fault as _, Step, quoted};
use crate::name::{CLUSTER_LABEL, HIDDEN_PREFIX};
use crate::parked::{AGGREGATION_ANNOTATION, parked, parked_annotation};
use crate::request::{Reason, Refusal};

// === impl Mapper ===

impl Mapper<'_, '_> {
    /// `metadata` of a ClusterRole, with the label that assigns the role to the virtual cluster.
    pub(super) fn role_meta(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Refusal> {
        self.descend(message, range)?;
        let number = |key| message.number(key).expect("ObjectMeta has it, as a test shows");
        let mut missing = Writer::new();
        Entry::write(&mut missing, number("labels"), CLUSTER_LABEL, self.request.mapping.cluster().as_str());
        if let Some(aggregation) = self.aggregation.take() {
            Entry::write(&mut missing, number("annotations"), AGGREGATION_ANNOTATION, &aggregation);
        }
        self.splice.append(range, missing);
        Ok(())
    }

    /// The name of a ClusterRole. An empty one stays unchanged.
    pub(super) fn role(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            let host = self.request.role(&String::from_utf8_lossy(self.splice.bytes(found)))?;
            self.splice.replace(found, host.into());
        }
        Ok(())
    }

    pub(super) fn role_label(&mut self, entry: &Entry<'_>) -> Result<(), Refusal> {
        not_ours(entry)?;
        self.rename_key(entry, Some(parked(&entry.key)));
        Ok(())
    }

    pub(super) fn role_annotation(&mut self, entry: &Entry<'_>) -> Result<(), Refusal> {
        not_ours(entry)?;
        self.rename_key(entry, parked_annotation(&entry.key));
        Ok(())
    }

    pub(super) fn rename_key(&mut self, entry: &Entry<'_>, host: Option<String>) {
        if let (Some(found), Some(host)) = (&entry.found_key, host) {
            self.splice.replace(found, Bytes::from(host));
        }
    }
}

/// Refuses Atoll's own labels and annotations.
pub(super) fn not_ours(entry: &Entry<'_>) -> Result<(), Refusal> {
    if entry.key.starts_with(HIDDEN_PREFIX) { Err(Reason::Protected.into()) } else { Ok(()) }
}

/// An `AggregationRule` of rbac/v1 in JSON.
pub(super) fn aggregation_rule(message: &[u8]) -> Result<String, Refusal> {
    let selectors = each(message, |number, bytes| match number {
        1 => label_selector(bytes),
        _ => Err(Unknown::Field),
    });
    let selectors = selectors.map_err(|unknown| Refusal::from(unknown).within(Step::Key("aggregationRule")))?;
    Ok(format!("{{\"clusterRoleSelectors\":[{}]}}", selectors.join(",")))
}

/// A `LabelSelector` of apimachinery's `pkg/apis/meta/v1/generated.proto`.
fn label_selector(message: &[u8]) -> Result<String, Unknown> {
    let (mut labels, mut expressions) = (Vec::new(), Vec::new());
    each(message, |number, bytes| {
        match number {
            1 => labels.push(label(bytes)?),
            2 => expressions.push(requirement(bytes)?),
            _ => return Err(Unknown::Field),
        }
        Ok(String::new())
    })?;
    let mut members = Vec::new();
    if !labels.is_empty() {
        members.push(format!("\"matchLabels\":{{{}}}", labels.join(",")));
    }
    if !expressions.is_empty() {
        members.push(format!("\"matchExpressions\":[{}]", expressions.join(",")));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

/// A `LabelSelectorRequirement`.
fn requirement(message: &[u8]) -> Result<String, Unknown> {
    let (mut key, mut operator, mut values) = (text(b""), text(b""), Vec::new());
    each(message, |number, bytes| {
        match number {
            1 => key = text(bytes),
            2 => operator = text(bytes),
            3 => values.push(text(bytes)),
            _ => return Err(Unknown::Field),
        }
        Ok(String::new())
    })?;
    let values = if values.is_empty() { String::new() } else { format!(",\"values\":[{}]", values.join(",")) };
    Ok(format!("{{\"key\":{key},\"operator\":{operator}{values}}}"))
}

/// An entry of `matchLabels`.
fn label(message: &[u8]) -> Result<String, Unknown> {
    let (mut key, mut value) = (text(b""), text(b""));
    each(message, |number, bytes| {
        match number {
            1 => key = text(bytes),
            2 => value = text(bytes),
            _ => return Err(Unknown::Field),
        }
        Ok(String::new())
    })?;
    Ok(format!("{key}:{value}"))
}

/// A part of an aggregation rule is unknown, so it cannot be parked.
enum Unknown {
    Field,
    Wire(WireError),
}

/// The results of `field` for each field of a message, by its number.
fn each(message: &[u8], mut field: impl FnMut(u32, &[u8]) -> Result<String, Unknown>) -> Result<Vec<String>, Unknown> {
    let (mut found, mut reader) = (Vec::new(), Reader::new(message));
    while let Some(next) = reader.next_field().map_err(Unknown::Wire)? {
        found.push(field(next.number, next.bytes().map_err(Unknown::Wire)?)?);
    }
    Ok(found)
}

/// A string of JSON.
fn text(bytes: &[u8]) -> String {
    quoted(&String::from_utf8_lossy(bytes))
}

impl From<Unknown> for Refusal {
    fn from(unknown: Unknown) -> Self {
        match unknown {
            Unknown::Field => Reason::WrongType { expected: "an aggregation rule without unknown fields" }.into(),
            Unknown::Wire(error) => error.into(),
        }
    }
}
