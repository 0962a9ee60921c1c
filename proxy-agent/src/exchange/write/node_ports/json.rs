//! Node ports in JSON bodies.

use bytes::Bytes;
use rewrite::node_ports::{NodePort, is_ours};
use serde_json::{Map, Value};

use crate::exchange::ports::{Form, Ports, Settled, has_node_ports, number, place};

/// The directive of a strategic merge patch that removes what the patch does not name.
const DIRECTIVE: &str = "$patch";

/// The body for the host. `None` if it does not change, or if it is not an object, which the engine refuses.
pub(crate) fn settled(ports: &mut Ports, form: Form, body: &Bytes) -> Option<Bytes> {
    // Every key of ours contains this text, unless it has escapes.
    let may_name_ours = [&b"node-port"[..], b"\\u"].iter().any(|word| memchr::memmem::find(body, word).is_some());
    if ports.are_plain() && !may_name_ours {
        return None;
    }
    let before: Value = serde_json::from_slice(body).ok()?;
    let mut object = before.clone();
    ports.begin();
    let has_ports = match object.get_mut("spec").and_then(Value::as_object_mut) {
        Some(held) => spec(ports, form, held),
        None => form == Form::Apply,
    };
    ports.end(form, has_ports);
    annotations(ports, form, object.as_object_mut()?);
    (object != before).then(|| object.to_string().into())
}

/// Settles the ports in a specification. Returns whether a Service of its type has node ports.
fn spec(ports: &mut Ports, form: Form, spec: &mut Map<String, Value>) -> bool {
    let kind = spec.get("type").and_then(Value::as_str);
    // An apply need not contain the type.
    let has_ports = kind.map_or(form == Form::Apply, has_node_ports);
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(at) = place(port) else { continue };
        if let Some(port) = port.as_object_mut() {
            settle(ports, form, at, port, "nodePort");
        }
    }
    settle(ports, form, NodePort::HealthCheck, spec, "healthCheckNodePort");
    has_ports
}

fn settle(ports: &mut Ports, form: Form, at: NodePort, object: &mut Map<String, Value>, key: &str) {
    match ports.settle(form, at, object.get(key).and_then(number)) {
        Settled::AsRequested => {}
        Settled::Put(real) => drop(object.insert(key.to_owned(), real.into())),
        Settled::LeftOut => drop(object.remove(key)),
    }
}

fn annotations(ports: &Ports, form: Form, object: &mut Map<String, Value>) {
    let held = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    match held {
        Some(Value::Object(held)) => held.retain(|key, _| !is_ours(key)),
        // All annotations that the client sees.
        Some(held @ Value::Null) if form == Form::Partial => {
            *held = ports.annotations.iter().map(|key| (key.clone(), Value::Null)).collect();
        }
        _ => {}
    }
    let held = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let is_replaced = held.is_some_and(|held| held.get(DIRECTIVE).is_some());
    let wanted: Vec<(String, Value)> = if form == Form::Partial && !is_replaced {
        ports.changes().map(|(key, value)| (key, value.map_or(Value::Null, Value::from))).collect()
    } else {
        ports.requested().map(|(key, value)| (key, value.into())).collect()
    };
    if wanted.is_empty() {
        return;
    }
    // If the metadata or the annotations are not maps, the host refuses the object.
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    let held = metadata.entry("annotations").or_insert(Value::Null);
    if held.is_null() {
        *held = Value::Object(Map::new());
    }
    if let Some(held) = held.as_object_mut() {
        held.extend(wanted);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use serde_json::json;

    /// The ports of a Service that has 31080 instead of the requested 30080.
    fn ports(taken: &[u16]) -> Ports {
        let live = json!({
            "metadata": {"annotations": {"a": "b", "atoll.dev/asked-node-port.80.tcp": "30080"}},
            "spec": {"type": "NodePort", "ports": [
                {"port": 80, "protocol": "TCP", "nodePort": 31080}, {"port": 81, "nodePort": 30081},
            ]},
        });
        Ports::new(Some(&live), taken.iter().copied().collect(), false)
    }

    fn mapped(mut ports: Ports, form: Form, body: &Value) -> Value {
        let body = Bytes::from(body.to_string());
        serde_json::from_slice(&settled(&mut ports, form, &body).unwrap_or(body)).unwrap()
    }

    fn service(annotations: &Value, nodes: [Value; 2]) -> Value {
        let [first, second] = nodes;
        let ports = json!([{"port": 80, "protocol": "TCP", "nodePort": first}, {"port": 81, "nodePort": second}]);
        json!({"metadata": {"annotations": annotations}, "spec": {"type": "NodePort", "ports": ports}})
    }

    const KEY: &str = "atoll.dev/asked-node-port.80.tcp";

    #[test]
    fn a_service_can_be_written_as_it_was_read() {
        let read = service(&json!({"a": "b", "atoll.dev/node-ports": "30080=31080"}), [30080.into(), 30081.into()]);
        let host = service(&json!({"a": "b", KEY: "30080"}), [31080.into(), 30081.into()]);
        assert_eq!(mapped(ports(&[]), Form::Whole, &read), host);
        // A client that writes the whole object does not know the annotations.
        let pushed = service(&json!({"a": "b"}), [30080.into(), 30081.into()]);
        assert_eq!(mapped(ports(&[]), Form::Whole, &pushed), host);
        assert_eq!(mapped(ports(&[]), Form::Whole, &json!({"spec": pushed["spec"]}))["spec"], host["spec"]);
    }

    #[test]
    fn another_port_is_first_tried_as_requested() {
        let requested = service(&json!({"a": "b"}), [30082.into(), 30081.into()]);
        assert_eq!(mapped(ports(&[]), Form::Whole, &requested), requested);
        let kept = service(&json!({"a": "b", KEY: "30082"}), [31080.into(), 30081.into()]);
        assert_eq!(mapped(ports(&[30082]), Form::Whole, &requested), kept);
        // A Service without node ports has no annotations about them.
        let mut none = requested;
        none["spec"]["type"] = "ClusterIP".into();
        none["spec"]["ports"] = json!([{"port": 80}]);
        assert_eq!(mapped(ports(&[]), Form::Whole, &none)["metadata"]["annotations"], json!({"a": "b"}));
    }

    #[test]
    fn a_new_service_gets_what_the_host_chooses() {
        let fresh = Ports::new(None, BTreeSet::from([30080, 30090]), false);
        let mut requested = service(&Value::Null, [30080.into(), 30081.into()]);
        requested["spec"]["healthCheckNodePort"] = 30090.into();
        let host = mapped(fresh, Form::Whole, &requested);
        let annotations = json!({KEY: "30080", "atoll.dev/asked-node-port.health-check": "30090"});
        let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 81, "nodePort": 30081}]);
        let expected = json!({"metadata": {"annotations": annotations}, "spec": {"type": "NodePort", "ports": ports}});
        assert_eq!(host, expected);
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        assert_eq!(mapped(ports(&[]), Form::Partial, &labels), labels);
        let port = |node: u16| json!({"spec": {"ports": [{"port": 80, "protocol": "TCP", "nodePort": node}]}});
        assert_eq!(mapped(ports(&[]), Form::Partial, &port(30080)), port(31080));
        let mut moved = port(31080);
        moved["metadata"] = json!({"annotations": {KEY: "30082"}});
        assert_eq!(mapped(ports(&[30082]), Form::Partial, &port(30082)), moved);
        let mut free = port(30082);
        free["metadata"] = json!({"annotations": {KEY: null}});
        assert_eq!(mapped(ports(&[]), Form::Partial, &port(30082)), free);
    }

    #[test]
    fn no_client_writes_our_annotations() {
        for forged in [json!({KEY: "1", "c": "d"}), json!({"atoll.dev/node-ports": null, "c": "d"})] {
            let patch = json!({"metadata": {"annotations": forged}});
            let kept = json!({"metadata": {"annotations": {"c": "d"}}});
            assert_eq!(mapped(ports(&[]), Form::Partial, &patch), kept);
            assert_eq!(mapped(Ports::default(), Form::Whole, &patch), kept);
        }
        let escaped = Bytes::from(r#"{"metadata":{"annotations":{"atoll.dev/asked-\u006eode-port.80.tcp":"1"}}}"#);
        let host = settled(&mut Ports::default(), Form::Whole, &escaped).unwrap();
        assert_eq!(host, r#"{"metadata":{"annotations":{}}}"#);
        let all = json!({"metadata": {"annotations": null}});
        let known = json!({"metadata": {"annotations": {"a": null}}});
        assert_eq!(mapped(ports(&[]), Form::Partial, &all), known);
        let replaced = json!({"metadata": {"annotations": {"$patch": "replace", "c": "d"}}});
        let kept = json!({"metadata": {"annotations": {"$patch": "replace", "c": "d", KEY: "30080"}}});
        assert_eq!(mapped(ports(&[]), Form::Partial, &replaced), kept);
    }

    #[test]
    fn an_applier_says_nothing_of_a_port_it_did_not_get() {
        let apply = json!({"spec": {"ports": [{"port": 80, "nodePort": 30080}]}});
        let host = json!({"metadata": {"annotations": {KEY: "30080"}}, "spec": {"ports": [{"port": 80}]}});
        // In the first write, and in all later ones.
        assert_eq!(mapped(Ports::new(None, BTreeSet::from([30080]), false), Form::Apply, &apply), host);
        assert_eq!(mapped(ports(&[]), Form::Apply, &apply), host);
        let other = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"ports": [{"port": 80}]}});
        assert_eq!(mapped(ports(&[]), Form::Apply, &other), other);
    }

    #[test]
    fn a_status_keeps_the_word() {
        let live = json!({"metadata": {"annotations": {KEY: "30080"}}});
        let status = json!({"metadata": {"name": "a"}, "status": {}});
        let host = mapped(Ports::new(Some(&live), BTreeSet::new(), true), Form::Whole, &status);
        assert_eq!(host["metadata"], json!({"name": "a", "annotations": {KEY: "30080"}}));
    }
}
