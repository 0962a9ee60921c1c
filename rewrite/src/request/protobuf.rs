//! Requests in protobuf.
//!
//! The decisions are those for JSON. Only the form differs: the entries of a map or list occur one by one, between other fields
//! and in any order, so missing entries are added at the end of the message around them.

use std::ops::Range;

use bytes::Bytes;
use kube_wire::envelope::{Envelope, MAGIC};

use super::binding::{CLUSTER_BINDING, HOST_BINDING};
use super::refusal::{Reason, Refusal};
use super::report::Report;
use super::settings::Settings;
use crate::Sink;
use crate::protobuf::{ProtoProgram, Splice};

mod aggregation;
mod entry;
mod fields;
mod namespace;
mod object;
mod pod;
mod reference;
mod review;
mod role;
mod rule;
mod selector;

use fields::Fields;
use object::Mapper;

/// `raw` of `runtime.Unknown` (apimachinery's `pkg/runtime/generated.proto`).
const RAW: u32 = 2;
/// `typeMeta` of `runtime.Unknown`, and `kind` in it.
const TYPE_META: u32 = 1;
const KIND: u32 = 2;

/// See [`Request::map_protobuf`](super::Request::map_protobuf).
pub(super) fn map(
    settings: &Settings,
    program: ProtoProgram,
    body: &Bytes,
    sink: &mut impl Sink,
) -> Result<Report, Refusal> {
    let envelope = Envelope::decode(body).map_err(Reason::from)?;
    if !envelope.holds_protobuf() {
        return Err(Reason::Wrapped.into());
    }
    if !program.is_for(envelope.api_version, envelope.kind) {
        return Err(Reason::WrongKind { expected: program.to_string() }.into());
    }
    let mut mapper = Mapper::new(settings, Splice::new(body));
    if program.kind() == CLUSTER_BINDING {
        host_kind(&mut mapper.fields, MAGIC.len()..body.len())?;
    }
    if let Some(raw) = mapper.fields.find(MAGIC.len()..body.len(), RAW)? {
        mapper.object(program.root(), &raw)?;
    }
    let Fields { splice, report, .. } = mapper.fields;
    splice.finish(body, sink);
    Ok(report)
}

/// Replaces the kind in an envelope by that on the host.
fn host_kind(fields: &mut Fields<'_, '_>, envelope: Range<usize>) -> Result<(), Refusal> {
    let Some(type_meta) = fields.find(envelope, TYPE_META)? else { return Ok(()) };
    fields.enter(&type_meta, |fields, range| {
        if let Some(kind) = fields.find(range, KIND)?.filter(|kind| !kind.is_empty()) {
            fields.splice.replace(&kind, Bytes::from_static(HOST_BINDING.as_bytes()));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;
