//! `view/protobuf/tests.rs` compares the objects of `testdata/shown.json`. Here, the result in JSON is the expected
//! one.

use bytes::Bytes;
use kube_wire::envelope::Envelope;
use kube_wire::proto::{Reader, Value as Wire, Writer};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::entry::{KEY, VALUE};
use super::*;
use crate::View;
use crate::schema::program_for;
use crate::view::tests::mapping;
use crate::view::{Filter, Verdict};

/// The relevant parts of a Service.
#[derive(Clone, Debug, PartialEq)]
struct Service {
    annotations: Vec<(String, String)>,
    ports: Vec<(u16, String, u16)>,
    health: u16,
}

/// Numbers of `Service`, `ServiceSpec` and `ServicePort` in core/v1 generated.proto.
const SPEC: u32 = 2;
const PORTS: u32 = 1;
const HEALTH: u32 = 12;
const PROTOCOL: u32 = 2;
const PORT: u32 = 3;
const NODE_PORT: u32 = 5;
/// Of `ObjectMeta`.
const ANNOTATIONS: u32 = 12;

// === impl Service ===

impl Service {
    fn json(&self) -> Value {
        let number = |key: &str, number: u16| (number > 0).then(|| (key.to_owned(), Value::from(number)));
        let port = |(port, protocol, node_port): &(u16, String, u16)| {
            let mut object = json!({"port": port});
            let said = Some(("protocol".to_owned(), Value::from(&**protocol))).filter(|_| !protocol.is_empty());
            object.as_object_mut().unwrap().extend(said.into_iter().chain(number("nodePort", *node_port)));
            object
        };
        let mut spec = json!({"ports": self.ports.iter().map(port).collect::<Vec<_>>()});
        spec.as_object_mut().unwrap().extend(number("healthCheckNodePort", self.health));
        let annotations: serde_json::Map<_, _> =
            self.annotations.iter().map(|(key, value)| (key.clone(), Value::from(&**value))).collect();
        json!({"metadata": {"annotations": annotations}, "spec": spec})
    }

    fn of_json(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let number = |value: &Value| value.as_u64().unwrap_or_default().try_into().unwrap();
        let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
        let ports = object["spec"]["ports"].as_array().unwrap();
        Self {
            annotations: annotations.map(|(key, value)| (key.clone(), text(value))).collect(),
            ports: ports
                .iter()
                .map(|port| (number(&port["port"]), text(&port["protocol"]), number(&port["nodePort"])))
                .collect(),
            health: number(&object["spec"]["healthCheckNodePort"]),
        }
    }

    /// As Go writes it: zeros too.
    fn protobuf(&self) -> Bytes {
        let mut metadata = Writer::new();
        for (key, value) in &self.annotations {
            let mut entry = Writer::new();
            entry.bytes(KEY, key.as_bytes());
            entry.bytes(VALUE, value.as_bytes());
            metadata.bytes(ANNOTATIONS, &entry.into_bytes());
        }
        let mut spec = Writer::new();
        for (port, protocol, node_port) in &self.ports {
            let mut message = Writer::new();
            message.bytes(PROTOCOL, protocol.as_bytes());
            message.varint(PORT, (*port).into());
            message.varint(NODE_PORT, (*node_port).into());
            spec.bytes(PORTS, &message.into_bytes());
        }
        spec.varint(HEALTH, self.health.into());
        let mut service = Writer::new();
        service.bytes(METADATA, &metadata.into_bytes());
        service.bytes(SPEC, &spec.into_bytes());
        let raw = service.into_bytes();
        Envelope { api_version: "v1", kind: "Service", raw: &raw, ..Envelope::default() }.encode().into()
    }

    fn of_protobuf(body: &[u8]) -> Self {
        let mut service = Self { annotations: vec![], ports: vec![], health: 0 };
        let text = |value| match value {
            Wire::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        let number = |value| match value {
            Wire::Varint(number) => u16::try_from(number).unwrap(),
            other => panic!("{other:?}"),
        };
        for (path, value) in leaves(&Envelope::decode(body).unwrap()) {
            match path[..] {
                [METADATA, ANNOTATIONS, KEY] => service.annotations.push((text(value), String::new())),
                [METADATA, ANNOTATIONS, VALUE] => service.annotations.last_mut().unwrap().1 = text(value),
                [SPEC, PORTS, PROTOCOL] => service.ports.push((0, text(value), 0)),
                [SPEC, PORTS, PORT] => service.ports.last_mut().unwrap().0 = number(value),
                [SPEC, PORTS, NODE_PORT] => service.ports.last_mut().unwrap().2 = number(value),
                [SPEC, HEALTH] => service.health = number(value),
                _ => panic!("{path:?}"),
            }
        }
        service
    }
}

/// The values in an object, each with its path of field numbers.
fn leaves<'b>(object: &Envelope<'b>) -> Vec<(Vec<u32>, Wire<'b>)> {
    fn collect<'b>(path: &[u32], message: &'b [u8], found: &mut Vec<(Vec<u32>, Wire<'b>)>) {
        let mut fields = Reader::new(message);
        while let Some(field) = fields.next_field().unwrap() {
            let path = [path, &[field.number]].concat();
            match (&path[..], field.value) {
                ([METADATA | SPEC] | [METADATA, ANNOTATIONS] | [SPEC, PORTS], Wire::Bytes(inside)) => {
                    collect(&path, inside, found);
                }
                (_, value) => found.push((path, value)),
            }
        }
    }
    let mut found = Vec::new();
    collect(&[], object.raw, &mut found);
    found
}

fn in_protobuf(body: &Bytes) -> Result<Bytes, Unreadable> {
    let mut out: Vec<Bytes> = Vec::new();
    let program = program_for("", "v1", "services");
    let verdict = View::new(mapping()).protobuf(&program, Filter::Everything, body, &mut out)?;
    assert_eq!(verdict, Verdict::Shown);
    Ok(out.concat().into())
}

fn in_json(host: &Service) -> Service {
    let mut out: Vec<Bytes> = Vec::new();
    let program = program_for("", "v1", "services");
    let body = Bytes::from(host.json().to_string());
    View::new(mapping()).object(&program, Filter::Everything, &body, &mut out).unwrap();
    Service::of_json(&serde_json::from_slice(&out.concat()).unwrap())
}

fn services() -> impl Strategy<Value = Service> {
    const KEYS: &[&str] = &[
        "a",
        "atoll.dev/asked-node-port.080.TCP",
        "atoll.dev/asked-node-port.53.udp",
        "atoll.dev/asked-node-port.80.icmp",
        "atoll.dev/asked-node-port.80.tcp",
        "atoll.dev/asked-node-port.9.sctp",
        "atoll.dev/asked-node-port.health-check",
        "atoll.dev/node-ports",
        "atoll.dev/other",
        "z",
    ];
    const VALUES: &[&str] = &["1", "127", "128", "30053", "30080", "65535", "", "many", "65536"];
    let annotations = btree_map(select(KEYS), select(VALUES), 0..6);
    let protocols = select(&["", "TCP", "UDP", "SCTP", "ICMP"][..]);
    let number = || select(&[0_u16, 1, 127, 128, 16383, 16384, 31080][..]);
    let port = (select(&[9_u16, 53, 80][..]), protocols, number());
    (annotations, vec(port, 0..5), number()).prop_map(|(annotations, ports, health)| Service {
        annotations: annotations.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        ports: ports.into_iter().map(|(port, protocol, node_port)| (port, protocol.to_owned(), node_port)).collect(),
        health,
    })
}

proptest! {
    #[test]
    fn protobuf_and_json_agree(host in services()) {
        let shown = Service::of_protobuf(&in_protobuf(&host.protobuf()).unwrap());
        prop_assert_eq!(&shown, &in_json(&host));
        let is_hidden = |key: &str| key.starts_with("atoll.dev/asked-node-port");
        prop_assert!(!shown.annotations.iter().any(|(key, _)| is_hidden(key)), "{:?}", shown);
    }
}

#[test]
fn requested_ports_are_shown_once() {
    let twice = Service {
        annotations: [("080.TCP", "30080"), ("80.tcp", "30081")]
            .map(|(place, asked)| (format!("atoll.dev/asked-node-port.{place}"), asked.to_owned()))
            .into(),
        ports: vec![(80, "TCP".to_owned(), 31080)],
        health: 0,
    };
    let shown = Service {
        annotations: vec![(SHOWN_ANNOTATION.to_owned(), "30080=31080".to_owned())],
        ports: vec![(80, "TCP".to_owned(), 30080)],
        health: 0,
    };
    assert_eq!(in_json(&twice), shown);
    assert_eq!(Service::of_protobuf(&in_protobuf(&twice.protobuf()).unwrap()), shown);
}

#[test]
fn invalid_and_duplicate_ports_are_refused() {
    let service = |spec: Writer| {
        let mut entry = Writer::new();
        entry.bytes(KEY, b"atoll.dev/asked-node-port.health-check");
        entry.bytes(VALUE, b"30090");
        let mut metadata = Writer::new();
        metadata.bytes(ANNOTATIONS, &entry.into_bytes());
        let mut service = Writer::new();
        service.bytes(METADATA, &metadata.into_bytes());
        service.bytes(SPEC, &spec.into_bytes());
        let raw = service.into_bytes();
        let envelope = Envelope { api_version: "v1", kind: "Service", raw: &raw, ..Envelope::default() };
        in_protobuf(&envelope.encode().into())
    };
    let mut two = Writer::new();
    two.varint(HEALTH, 31090);
    assert!(service(two.clone()).is_ok());
    two.varint(HEALTH, 31091);
    assert!(service(two).is_err());
    let mut text = Writer::new();
    text.bytes(HEALTH, b"31090");
    assert!(service(text).is_err());
}
