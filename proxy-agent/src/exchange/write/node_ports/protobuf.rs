//! Node ports in protobuf bodies, which are whole objects.
//!
//! The numbers are those of `Service`, `ServiceSpec` and `ServicePort` in core/v1 generated.proto, and of `ObjectMeta`
//! in meta/v1's.

use bytes::Bytes;
use kube_wire::envelope::Envelope;
use kube_wire::proto::{Field, Reader, Value as Wire, WireError, Writer};
use rewrite::node_ports::{NodePort, Protocol, is_ours};
use serde_json::{Map, Value, json};

use crate::exchange::ports::{Form, Ports, Settled, has_node_ports};

const METADATA: u32 = 1;
const SPEC: u32 = 2;
const ANNOTATIONS: u32 = 12;
const PORTS: u32 = 1;
const TYPE: u32 = 4;
const HEALTH_CHECK: u32 = 12;
const PROTOCOL: u32 = 2;
const PORT: u32 = 3;
const NODE_PORT: u32 = 5;
/// A field of the entry of a map.
const KEY: u32 = 1;
/// A field of the entry of a map.
const VALUE: u32 = 2;

/// The body for the host. `None` if it is not a Service, which the engine refuses.
pub(crate) fn settled(ports: &mut Ports, body: &Bytes) -> Option<Bytes> {
    let envelope = Envelope::decode(body).ok().filter(Envelope::holds_protobuf)?;
    let raw = service(ports, envelope.raw).ok()?;
    Some(Envelope { raw: &raw, ..envelope }.encode().into())
}

/// The fields of a Service about node ports, as JSON. `None` if it is not a Service.
pub(crate) fn read(body: &[u8]) -> Option<Value> {
    let envelope = Envelope::decode(body).ok().filter(Envelope::holds_protobuf)?;
    fields_as_json(Some(envelope.raw).filter(|_| envelope.kind == "Service")?).ok()
}

fn fields_as_json(message: &[u8]) -> Result<Value, WireError> {
    let (mut annotations, mut ports, mut health) = (Map::new(), Vec::new(), Value::Null);
    for field in fields(message)? {
        match field.number {
            METADATA => {
                for entry in fields(field.bytes()?)?.iter().filter(|field| field.number == ANNOTATIONS) {
                    let entry = members(entry.bytes()?, &[("key", KEY), ("value", VALUE)])?;
                    annotations.extend(entry["key"].as_str().map(|key| (key.to_owned(), entry["value"].clone())));
                }
            }
            SPEC => {
                let spec = field.bytes()?;
                health = members(spec, &[("port", HEALTH_CHECK)])?["port"].clone();
                for port in fields(spec)?.iter().filter(|field| field.number == PORTS) {
                    let keys = [("protocol", PROTOCOL), ("port", PORT), ("nodePort", NODE_PORT)];
                    let port = members(port.bytes()?, &keys)?;
                    ports.push(port);
                }
            }
            _ => {}
        }
    }
    Ok(json!({
        "metadata": {"annotations": annotations}, "spec": {"ports": ports, "healthCheckNodePort": health},
    }))
}

/// The texts and numbers of a message by their keys, without zeros (`omitempty`).
fn members(message: &[u8], keys: &[(&str, u32)]) -> Result<Value, WireError> {
    let mut members = Map::new();
    for field in fields(message)? {
        let Some((key, _)) = keys.iter().find(|(_, number)| *number == field.number) else { continue };
        let value = match field.value {
            Wire::Varint(0) => continue,
            Wire::Varint(number) => number.into(),
            _ => field.text()?.into(),
        };
        members.insert((*key).to_owned(), value);
    }
    Ok(Value::Object(members))
}

fn service(ports: &mut Ports, message: &[u8]) -> Result<Vec<u8>, WireError> {
    ports.begin();
    let (mut specs, mut has_ports) = (Vec::new(), false);
    for field in fields(message)?.iter().filter(|field| field.number == SPEC) {
        specs.push(spec(ports, field.bytes()?, &mut has_ports)?);
    }
    ports.end(Form::Whole, has_ports);
    let (mut out, mut specs, mut has_metadata) = (Writer::new(), specs.into_iter(), false);
    for field in fields(message)? {
        match field.number {
            METADATA => {
                // If there are several, the last one gets our annotations. Go merges all of them.
                out.bytes(METADATA, &metadata(ports, field.bytes()?, !has_metadata)?);
                has_metadata = true;
            }
            SPEC => out.bytes(SPEC, &specs.next().unwrap_or_default()),
            _ => out.raw(&message[field.span.clone()]),
        }
    }
    if !has_metadata {
        out.bytes(METADATA, &metadata(ports, &[], true)?);
    }
    Ok(out.into_bytes())
}

fn spec(ports: &mut Ports, message: &[u8], has_ports: &mut bool) -> Result<Vec<u8>, WireError> {
    let mut out = Writer::new();
    for field in fields(message)? {
        match field.number {
            PORTS => out.bytes(PORTS, &port(ports, field.bytes()?)?),
            HEALTH_CHECK => settle(ports, NodePort::HealthCheck, &field, message, &mut out)?,
            number => {
                if number == TYPE {
                    *has_ports = has_node_ports(field.text()?);
                }
                out.raw(&message[field.span.clone()]);
            }
        }
    }
    Ok(out.into_bytes())
}

fn port(ports: &mut Ports, message: &[u8]) -> Result<Vec<u8>, WireError> {
    let (mut number, mut protocol, mut asks) = (None, Some(Protocol::default()), false);
    for field in fields(message)? {
        match field.number {
            PORT => number = u16::try_from(field.varint()?).ok(),
            PROTOCOL => protocol = Protocol::of(field.text()?),
            NODE_PORT => asks = true,
            _ => {}
        }
    }
    let Some((port, protocol)) = number.zip(protocol) else { return Ok(message.to_vec()) };
    let at = NodePort::Of { port, protocol };
    if !asks {
        ports.settle(Form::Whole, at, None);
    }
    let mut out = Writer::new();
    for field in fields(message)? {
        match field.number {
            NODE_PORT => settle(ports, at, &field, message, &mut out)?,
            _ => out.raw(&message[field.span.clone()]),
        }
    }
    Ok(out.into_bytes())
}

fn settle(
    ports: &mut Ports,
    at: NodePort,
    field: &Field<'_>,
    message: &[u8],
    out: &mut Writer,
) -> Result<(), WireError> {
    match ports.settle(Form::Whole, at, u16::try_from(field.varint()?).ok()) {
        Settled::AsRequested => out.raw(&message[field.span.clone()]),
        Settled::Put(real) => out.varint(field.number, real.into()),
        Settled::LeftOut => {}
    }
    Ok(())
}

fn metadata(ports: &Ports, message: &[u8], adds: bool) -> Result<Vec<u8>, WireError> {
    let mut out = Writer::new();
    for field in fields(message)? {
        if field.number == ANNOTATIONS {
            let keys: Vec<_> = fields(field.bytes()?)?.into_iter().filter(|part| part.number == KEY).collect();
            // If one entry has several keys, Go uses the last.
            if keys.last().map(Field::bytes).transpose()?.is_some_and(|key| is_ours(&String::from_utf8_lossy(key))) {
                continue;
            }
        }
        out.raw(&message[field.span.clone()]);
    }
    for (key, value) in ports.requested().filter(|_| adds) {
        let mut entry = Writer::new();
        entry.bytes(KEY, key.as_bytes());
        entry.bytes(VALUE, value.as_bytes());
        out.bytes(ANNOTATIONS, &entry.into_bytes());
    }
    Ok(out.into_bytes())
}

fn fields(message: &[u8]) -> Result<Vec<Field<'_>>, WireError> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(|| reader.next_field().transpose()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kube_wire::media::Encoding;

    use super::super::warnings;
    use super::*;

    fn message(fields: &[(u32, &[u8])], numbers: &[(u32, u64)]) -> Vec<u8> {
        let mut out = Writer::new();
        for (number, bytes) in fields {
            out.bytes(*number, bytes);
        }
        for (number, value) in numbers {
            out.varint(*number, *value);
        }
        out.into_bytes()
    }

    fn service(annotations: &[(&str, &str)], node_ports: [Option<u64>; 2], health: Option<u64>) -> Bytes {
        let entries =
            annotations.iter().map(|(key, value)| message(&[(1, key.as_bytes()), (2, value.as_bytes())], &[]));
        let entries: Vec<_> = entries.collect();
        let mut metadata: Vec<(u32, &[u8])> = vec![(1, b"a")];
        metadata.extend(entries.iter().map(|entry| (12, &entry[..])));
        let metadata = message(&metadata, &[]);
        let port = |protocol: &[u8], node_port: Option<u64>| {
            let numbers: Vec<_> = [(3, 53)].into_iter().chain(node_port.map(|node_port| (5, node_port))).collect();
            message(&[(2, protocol)], &numbers)
        };
        let ports = [port(b"TCP", node_ports[0]), port(b"UDP", node_ports[1])];
        let health: Vec<_> = health.map(|port| (12, port)).into_iter().collect();
        let spec = message(&[(1, &ports[0]), (1, &ports[1]), (4, b"LoadBalancer")], &health);
        let raw = message(&[(1, &metadata), (2, &spec)], &[]);
        Envelope { api_version: "v1", kind: "Service", raw: &raw, ..Envelope::default() }.encode().into()
    }

    const TCP: &str = "atoll.dev/asked-node-port.53.tcp";
    const HEALTH: &str = "atoll.dev/asked-node-port.health-check";

    #[test]
    fn the_requested_port_is_recorded() {
        let mut ports = Ports::new(None, BTreeSet::from([30053, 30090]), false);
        let requested = service(
            &[("a", "b"), (TCP, "1"), ("atoll.dev/node-ports", "1=2")],
            [Some(30053), Some(30054)],
            Some(30090),
        );
        let host = service(&[("a", "b"), (TCP, "30053"), (HEALTH, "30090")], [None, Some(30054)], None);
        assert_eq!(settled(&mut ports, &requested), Some(host));
    }

    #[test]
    fn ports_that_the_host_has_chosen_can_be_read() {
        let body = service(&[(TCP, "30053"), (HEALTH, "30090")], [Some(31053), Some(0)], Some(31090));
        let expected = json!({
            "metadata": {"annotations": {TCP: "30053", HEALTH: "30090"}},
            "spec": {
                "ports": [{"port": 53, "protocol": "TCP", "nodePort": 31053}, {"port": 53, "protocol": "UDP"}],
                "healthCheckNodePort": 31090,
            },
        });
        assert_eq!(read(&body), Some(expected));
        let warned = warnings(&BTreeSet::from([30090]), Some(Encoding::Protobuf), &body);
        let warned = warned[0].to_str().unwrap();
        assert!(warned.contains("30090 is in use") && warned.contains("listen on 31090 instead"), "{warned}");
        let metadata = Envelope { kind: "PartialObjectMetadata", ..Envelope::decode(&body).unwrap() }.encode();
        assert_eq!(read(&metadata), None);
        assert_eq!(read(b"{}"), None);
    }

    #[test]
    fn later_writes_get_what_the_host_has() {
        let live = json!({
            "metadata": {"annotations": {TCP: "30053"}},
            "spec": {"ports": [{"port": 53, "protocol": "TCP", "nodePort": 31053}]},
        });
        let mut ports = Ports::new(Some(&live), BTreeSet::new(), false);
        let host = service(&[(TCP, "30053")], [Some(31053), Some(30054)], None);
        assert_eq!(settled(&mut ports, &service(&[], [Some(30053), Some(30054)], None)), Some(host));
        let silent = service(&[(TCP, "30053")], [None, None], None);
        assert_eq!(settled(&mut ports, &service(&[], [None, None], None)), Some(silent));
        let other = service(&[], [Some(30055), None], None);
        assert_eq!(settled(&mut ports, &other), Some(other));
        assert_eq!(settled(&mut ports, &Bytes::from("{}")), None);
    }
}
