//! The `aggregationRule` of a ClusterRole, which is parked as JSON.

use kube_wire::proto::{Reader, WireError};

use super::super::refusal::{Reason, Refusal};
use crate::json::{Fault as _, Step, quoted};

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
