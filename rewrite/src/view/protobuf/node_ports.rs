//! Services: clients see the node port that they requested, even if another virtual cluster has it.
//!
//! The whole object is in memory, so the requested ports are read before the ports. The visible annotation is written after
//! them, when the allocated ports are known.

use std::ops::Range;

use super::super::node_ports::AskedPorts;
use super::entry::{KEY, VALUE};
use super::object::ObjectReader;
use super::{METADATA, Unreadable};
use crate::json::Fate;
use crate::name::LAST_APPLIED_ANNOTATION;
use crate::node_ports::{NodePort, Protocol, SHOWN_ANNOTATION, is_ours};
use crate::program::Place;
use crate::protobuf::{Found, Inside, Message};

/// The ports of a Service.
#[derive(Default)]
pub(super) struct NodePorts {
    asked: AskedPorts,
    /// The allocated ports of fields with a requested port.
    real: Vec<(NodePort, u16)>,
    /// Whether an annotation was replaced by the visible one.
    is_told: bool,
}

// === impl NodePorts ===

impl NodePorts {
    fn real(&self, node_port: NodePort) -> Option<u16> {
        self.real.iter().find(|(known, _)| *known == node_port).map(|(_, real)| *real)
    }
}

// === impl ObjectReader ===

impl ObjectReader<'_, '_> {
    /// Reads the requested ports, if the object is a Service.
    pub(super) fn foresee_node_ports(&mut self, root: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let Some((_, metadata)) = root.field(METADATA) else { return Ok(()) };
        let Inside::Message(metadata) = &metadata.inside else { return Ok(()) };
        let of_service = |inside: &Inside| matches!(inside, Inside::Entries(Some(Place::ServiceAnnotations), _));
        let Some(annotations) = metadata.fields.iter().find(|field| of_service(&field.inside)) else { return Ok(()) };
        let Some(found) = self.splice.only(range, METADATA)? else { return Ok(()) };
        let mut entries = self.splice.fields(found.inside);
        while let Some(entry) = entries.next(|number| number == annotations.number)? {
            let [key, value] = [KEY, VALUE].map(|part| self.splice.text(&entry.inside, Some(part)));
            if let Some(asked) = AskedPorts::read(&String::from_utf8_lossy(key?), &String::from_utf8_lossy(value?)) {
                self.node_ports.asked.note(asked);
            }
        }
        Ok(())
    }

    /// An annotation of a Service, whose entry is at `range`.
    pub(super) fn service_annotation(
        &mut self,
        key: &[u8],
        value: Option<&Found>,
        range: &Range<usize>,
    ) -> Result<Fate, Unreadable> {
        let name = String::from_utf8_lossy(key);
        if let Some(value) = value.filter(|_| name == LAST_APPLIED_ANNOTATION) {
            self.value(Place::LastApplied, value);
        }
        if !is_ours(&name) {
            return Ok(Fate::Keep);
        }
        let (Some(value), Some(key)) = (value, self.splice.only(range, KEY)?) else { return Ok(Fate::Remove) };
        let ports = &mut self.node_ports;
        // The first valid annotation is replaced; the others are removed.
        let tells = AskedPorts::read(&name, &String::from_utf8_lossy(self.splice.bytes(value))).is_some();
        if !tells || std::mem::replace(&mut ports.is_told, true) {
            return Ok(Fate::Remove);
        }
        let told = ports.asked.told(|node_port, _| ports.real(node_port).map(|real| real.to_string()));
        self.splice.replace(&key, SHOWN_ANNOTATION.into());
        self.splice.replace(value, told.into());
        Ok(Fate::Keep)
    }

    /// An element of `spec.ports` of a Service.
    pub(super) fn service_port(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Unreadable> {
        let protocol = self.splice.text(range, message.number("protocol"))?;
        let protocol = Protocol::of(&String::from_utf8_lossy(protocol));
        let (Some(port), Some(node_port)) = (message.number("port"), message.number("nodePort")) else { return Ok(()) };
        let port = self.splice.number(range, port)?.and_then(|port| u16::try_from(port.value).ok());
        match port.zip(protocol) {
            Some((port, protocol)) => self.node_port(NodePort::Of { port, protocol }, node_port, range),
            None => Ok(()),
        }
    }

    /// A node port: the field `number` of the message at `around`.
    pub(super) fn node_port(
        &mut self,
        node_port: NodePort,
        number: u32,
        around: &Range<usize>,
    ) -> Result<(), Unreadable> {
        let asked = self.node_ports.asked.at(node_port).filter(|_| self.node_ports.real(node_port).is_none());
        let (Some(asked), Some(found)) = (asked, self.splice.number(around, number)?) else { return Ok(()) };
        // Zero means none: Go writes it into every port, and omits it in JSON (`omitempty`).
        let Some(real) = u16::try_from(found.value).ok().filter(|real| *real > 0) else { return Ok(()) };
        self.splice.renumber(&found, asked.into());
        self.node_ports.real.push((node_port, real));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
