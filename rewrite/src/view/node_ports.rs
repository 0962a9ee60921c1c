//! Services: clients see the node port that they requested, even if another virtual cluster has it.
//!
//! Annotations have the requested ports, and precede the ports. Metadata alone, and the rows of Tables, have no ports. So all
//! changes are made at the end of the object.

use std::ops::Range;

use bytes::Bytes;

use super::last_applied::LastApplied;
use crate::json::{Cursor, Edits, Malformed, Outcome};
use crate::name::LAST_APPLIED_ANNOTATION;
use crate::node_ports::{NodePort, Protocol, SHOWN_ANNOTATION, is_ours};

/// The requested ports, in the order of the annotations.
#[derive(Default)]
pub(super) struct RequestedPorts(Vec<(NodePort, u16)>);

/// The ports of a Service.
#[derive(Default)]
pub(super) struct NodePorts {
    requested: RequestedPorts,
    /// The key and the value of the first annotation, which is replaced by the visible one.
    shown: Option<(Range<usize>, Range<usize>)>,
    /// The allocated ports, with their positions.
    found: Vec<(NodePort, Range<usize>)>,
}

// === impl RequestedPorts ===

impl RequestedPorts {
    /// The requested port in an annotation.
    pub(super) fn read(key: &str, value: &str) -> Option<(NodePort, u16)> {
        NodePort::of_annotation(key).zip(value.parse().ok())
    }

    pub(super) fn note(&mut self, (node_port, requested): (NodePort, u16)) {
        // Two keys may be about one place, such as `80.tcp` and `080.TCP`.
        if self.at(node_port).is_none() {
            self.0.push((node_port, requested));
        }
    }

    /// The requested port of a field.
    pub(super) fn at(&self, node_port: NodePort) -> Option<u16> {
        self.0.iter().find(|(known, _)| *known == node_port).map(|(_, requested)| *requested)
    }

    /// The value of the visible annotation.
    pub(super) fn annotation(&self, mut real: impl FnMut(NodePort, u16) -> Option<String>) -> String {
        let each = self.0.iter().map(|&(node_port, requested)| match real(node_port, requested) {
            Some(real) => format!("{requested}={real}"),
            None => requested.to_string(),
        });
        each.collect::<Vec<_>>().join(",")
    }
}

// === impl NodePorts ===

impl NodePorts {
    /// `metadata.annotations` of a Service.
    pub(super) fn annotations(
        &mut self,
        mut last_applied: Option<&mut LastApplied>,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<Outcome, Malformed> {
        if cursor.peek()? != b'{' {
            return cursor.skip().map(|()| Outcome::Keep);
        }
        let extent = cursor.object(edits, |cursor, _, key| {
            if key.is(LAST_APPLIED_ANNOTATION)
                && let Some(last_applied) = &mut last_applied
            {
                last_applied.note(cursor)?;
                return Ok(Outcome::Keep);
            }
            let decoded = key.decode();
            if !is_ours(&decoded) {
                cursor.skip()?;
                return Ok(Outcome::Keep);
            }
            if cursor.peek()? != b'"' {
                cursor.skip()?;
                return Ok(Outcome::Remove);
            }
            let value = cursor.string()?;
            let requested = RequestedPorts::read(&decoded, &value.decode());
            let Some(requested) = requested else { return Ok::<_, Malformed>(Outcome::Remove) };
            self.requested.note(requested);
            if self.shown.is_some() {
                return Ok(Outcome::Remove);
            }
            self.shown = Some((key.range(), value.range()));
            Ok(Outcome::Keep)
        })?;
        Ok(if extent.removed > 0 && extent.kept == 0 { Outcome::Remove } else { Outcome::Keep })
    }

    /// An element of `spec.ports` of a Service.
    pub(super) fn port(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let protocol = cursor
            .look_up("protocol")?
            .map_or_else(|| Some(Protocol::default()), |protocol| Protocol::of(&protocol.decode()));
        if let Some(protocol) = protocol
            && let Some(port) = number_at(cursor, "port")?
            && let Ok(port) = String::from_utf8_lossy(cursor.slice(port)).parse()
            && let Some(node_port) = number_at(cursor, "nodePort")?
        {
            self.found.push((NodePort::Of { port, protocol }, node_port));
        }
        cursor.skip()
    }

    /// `spec.healthCheckNodePort` of a Service.
    pub(super) fn health_check(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        if let Some(range) = number(cursor)? {
            self.found.push((NodePort::HealthCheck, range));
        }
        Ok(())
    }

    /// Shows the requested ports.
    pub(super) fn conclude(self, cursor: &Cursor<'_>, edits: &mut Edits) {
        let Some((key, value)) = self.shown else { return };
        let annotation = self.requested.annotation(|node_port, requested| {
            let (_, range) = self.found.iter().find(|(found, _)| *found == node_port)?;
            edits.replace(range.clone(), requested.to_string().into());
            Some(String::from_utf8_lossy(cursor.slice(range.clone())).into_owned())
        });
        edits.replace(key, Bytes::from_static(SHOWN_ANNOTATION.as_bytes()));
        edits.replace(value, annotation.into());
    }
}

/// The range of the number at `key` of the object that is the next token. Consumes nothing.
fn number_at(cursor: &Cursor<'_>, key: &str) -> Result<Option<Range<usize>>, Malformed> {
    match cursor.member_at(key)? {
        Some(mut member) => number(&mut member),
        None => Ok(None),
    }
}

/// The range of the next value if it is a number. Consumes the value in any case.
fn number(cursor: &mut Cursor<'_>) -> Result<Option<Range<usize>>, Malformed> {
    let is_number = cursor.peek()?.is_ascii_digit();
    let start = cursor.at();
    cursor.skip()?;
    Ok(is_number.then(|| start..cursor.at()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::View;
    use crate::schema::program_for;
    use crate::view::tests::mapping;
    use crate::view::{Filter, Verdict};
    use serde_json::{Value, json};

    fn shown(service: &Value) -> Value {
        let body = Bytes::from(service.to_string());
        let mut out: Vec<Bytes> = Vec::new();
        let program = program_for("", "v1", "services");
        let verdict = View::new(mapping()).object(&program, Filter::Everything, &body, &mut out).unwrap();
        assert_eq!(verdict, Verdict::Shown);
        serde_json::from_slice(&out.concat()).unwrap()
    }

    fn service(annotations: &Value, ports: &Value, health: &Value) -> Value {
        json!({
            "kind": "Service", "metadata": {"name": "a", "namespace": "edge-ke", "annotations": annotations},
            "spec": {"healthCheckNodePort": health, "ports": ports},
        })
    }

    #[test]
    fn requested_ports_are_shown() {
        let annotations = json!({
            "a": "b", "atoll.dev/asked-node-port.53.udp": "30053", "atoll.dev/asked-node-port.80.tcp": "30080",
            "atoll.dev/asked-node-port.health-check": "30090", "atoll.dev/asked-node-port.9.tcp": "30009", "c": "d",
        });
        let ports = |first: u16, second: u16| {
            json!([
                {"port": 80, "protocol": "TCP", "nodePort": first}, {"port": 53, "protocol": "TCP", "nodePort": 31001},
                {"port": 53, "protocol": "UDP", "nodePort": second}, {"port": 9},
            ])
        };
        let expected = json!({"a": "b", "atoll.dev/node-ports": "30053=31053,30080=31080,30009,30090=31090", "c": "d"});
        let host = service(&annotations, &ports(31080, 31053), &json!(31090));
        let mut virt = service(&expected, &ports(30080, 30053), &json!(30090));
        virt["metadata"]["namespace"] = "edge".into();
        assert_eq!(shown(&host), virt);
    }

    #[test]
    fn other_ports_are_unchanged() {
        let ports = json!([{"port": 80, "nodePort": 31080}]);
        for annotations in [json!({"a": "b"}), json!({"atoll.dev/other": "1"}), Value::Null] {
            let host = service(&annotations, &ports, &Value::Null);
            let mut virt = host.clone();
            virt["metadata"]["namespace"] = "edge".into();
            assert_eq!(shown(&host), virt);
        }
        // A value that no client can write, and a key of ours that a client made up.
        for forged in [json!({"atoll.dev/node-ports": "1=2"}), json!({"atoll.dev/asked-node-port.80.tcp": "many"})] {
            let given = shown(&service(&forged, &ports, &Value::Null));
            assert!(given["metadata"].get("annotations").is_none(), "{given}");
            assert_eq!(given["spec"]["ports"], ports);
        }
    }

    #[test]
    fn metadata_alone_shows_the_requested_ports() {
        let annotations = json!({"atoll.dev/asked-node-port.80.tcp": "30080"});
        let given = shown(&json!({"metadata": {"name": "a", "annotations": annotations}}));
        assert_eq!(given["metadata"]["annotations"], json!({"atoll.dev/node-ports": "30080"}));
    }
}
