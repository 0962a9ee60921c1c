//! Services: clients see the node port that they requested, even if another virtual cluster has it.
//!
//! The whole object is in memory, so the requested ports are read before the ports. The visible annotation is written after
//! them, when the allocated ports are known.

use std::ops::Range;

use super::super::error::Unreadable;
use super::super::node_ports::RequestedPorts;
use super::entry::Entry;
use super::envelope::METADATA;
use crate::json::Outcome;
use crate::node_ports::{NodePort, Protocol, SHOWN_ANNOTATION, is_ours};
use crate::program::Place;
use crate::protobuf::{Inside, Message, Splice};

/// The ports of a Service.
#[derive(Default)]
pub(super) struct NodePorts {
    requested: RequestedPorts,
    /// The allocated ports of fields with a requested port.
    real: Vec<(NodePort, u16)>,
    /// Whether an annotation was replaced by the visible one.
    is_annotated: bool,
}

// === impl NodePorts ===

impl NodePorts {
    /// Reads the requested ports, if the object at `range` is a Service.
    pub(super) fn scan_ahead(
        &mut self,
        splice: &Splice<'_>,
        root: &Message,
        range: &Range<usize>,
    ) -> Result<(), Unreadable> {
        let Some((_, metadata)) = root.field(METADATA) else { return Ok(()) };
        let Inside::Message(metadata) = &metadata.inside else { return Ok(()) };
        let of_service = |inside: &Inside| matches!(inside, Inside::Entries(Some(Place::ServiceAnnotations), _));
        let Some(annotations) = metadata.fields.iter().find(|field| of_service(&field.inside)) else { return Ok(()) };
        let Some(found) = splice.only(range, METADATA)? else { return Ok(()) };
        let mut entries = splice.fields(found.inside);
        while let Some(found) = entries.next(|number| number == annotations.number)? {
            let entry = Entry::read(splice, &found.inside)?;
            let value = entry.value.as_ref().map_or(&b""[..], |value| splice.bytes(value));
            if let Some(requested) =
                RequestedPorts::read(&String::from_utf8_lossy(entry.key), &String::from_utf8_lossy(value))
            {
                self.requested.note(requested);
            }
        }
        Ok(())
    }

    /// An annotation of a Service.
    pub(super) fn annotation(&mut self, splice: &mut Splice<'_>, entry: &Entry<'_>) -> Result<Outcome, Unreadable> {
        let name = String::from_utf8_lossy(entry.key);
        if !is_ours(&name) {
            return Ok(Outcome::Keep);
        }
        let key = entry.found_key(splice)?;
        let (Some(value), Some(key)) = (&entry.value, key) else { return Ok(Outcome::Remove) };
        // The first valid annotation is replaced; the others are removed.
        let is_valid = RequestedPorts::read(&name, &String::from_utf8_lossy(splice.bytes(value))).is_some();
        if !is_valid || std::mem::replace(&mut self.is_annotated, true) {
            return Ok(Outcome::Remove);
        }
        let annotation = self.requested.annotation(|node_port, _| self.real(node_port).map(|real| real.to_string()));
        splice.replace(&key, SHOWN_ANNOTATION.into());
        splice.replace(value, annotation.into());
        Ok(Outcome::Keep)
    }

    /// An element of `spec.ports` of a Service.
    pub(super) fn port(
        &mut self,
        splice: &mut Splice<'_>,
        message: &Message,
        range: &Range<usize>,
    ) -> Result<(), Unreadable> {
        let protocol = splice.text(range, message.number("protocol"))?;
        let protocol = Protocol::of(&String::from_utf8_lossy(protocol));
        let (Some(port), Some(node_port)) = (message.number("port"), message.number("nodePort")) else { return Ok(()) };
        let port = splice.number(range, port)?.and_then(|port| u16::try_from(port.value).ok());
        match port.zip(protocol) {
            Some((port, protocol)) => self.node_port(splice, NodePort::Of { port, protocol }, node_port, range),
            None => Ok(()),
        }
    }

    /// A node port: the field `number` of the message at `around`.
    pub(super) fn node_port(
        &mut self,
        splice: &mut Splice<'_>,
        node_port: NodePort,
        number: u32,
        around: &Range<usize>,
    ) -> Result<(), Unreadable> {
        let requested = self.requested.at(node_port).filter(|_| self.real(node_port).is_none());
        let (Some(requested), Some(found)) = (requested, splice.number(around, number)?) else { return Ok(()) };
        // Zero means none: Go writes it into every port, and omits it in JSON (`omitempty`).
        let Some(real) = u16::try_from(found.value).ok().filter(|real| *real > 0) else { return Ok(()) };
        splice.renumber(&found, requested.into());
        self.real.push((node_port, real));
        Ok(())
    }

    fn real(&self, node_port: NodePort) -> Option<u16> {
        self.real.iter().find(|(known, _)| *known == node_port).map(|(_, real)| *real)
    }
}

#[cfg(test)]
mod tests;
