//! Node ports that another virtual cluster has: the host chooses others, and the client sees the ones that it requested.

use serde_json::{Value, json};
use test_host::{Expected, Reply, expect};

use crate::tests::agent::ClientRequest;
use crate::tests::scripted::{CONFIG, Scripted};

const SERVICES: &str = "/api/v1/namespaces/edge/services";
const HOST_SERVICES: &str = "/api/v1/namespaces/edge-ke/services";
const ALL: &str = "/api/v1/services?limit=500";

/// The annotation that keeps the requested node port of a port.
fn annotation(port: u16) -> String {
    format!("/metadata/annotations/atoll.dev~1asked-node-port.{port}.tcp")
}

/// A Service of a client with these ports, each with its node port.
fn service(ports: &[(u16, u16)]) -> Value {
    let port = |&(port, node_port): &(u16, u16)| json!({"name": format!("p{port}"), "port": port, "protocol": "TCP", "nodePort": node_port});
    let ports: Vec<_> = ports.iter().map(port).collect();
    json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "ports": ports}})
}

/// The same as the host stores it.
fn stored(namespace: &str, ports: &[(u16, u16)], requested: &[(u16, u16)]) -> Value {
    let mut service = service(ports);
    service["metadata"]["namespace"] = namespace.into();
    for (port, node_port) in requested {
        let key = format!("atoll.dev/asked-node-port.{port}.tcp");
        service["metadata"]["annotations"][key] = node_port.to_string().into();
    }
    service
}

/// The host's refusal of a port that is allocated.
fn taken(index: usize, node_port: u16) -> Reply {
    let field = format!("spec.ports[{index}].nodePort");
    let why = format!("Invalid value: {node_port}: provided port is already allocated");
    let message = format!("Service \"web\" is invalid: {field}: {why}");
    let causes = json!([{"reason": "FieldValueInvalid", "message": why, "field": field}]);
    Reply::json(
        422,
        &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422,
            "message": message, "details": {"name": "web", "kind": "Service", "causes": causes}}),
    )
}

fn services_of_the_host(items: &[Value]) -> (Expected, Reply) {
    (expect("GET", ALL).as_agent(), Reply::json(200, &json!({"metadata": {}, "items": items})))
}

fn post() -> Expected {
    expect("POST", HOST_SERVICES).as_user("vc:ke:admin")
}

#[tokio::test(start_paused = true)]
async fn a_taken_port_is_replaced_with_a_warning() {
    let agent = Scripted::new().await;
    agent.on(post().with("/spec/ports/0/nodePort", 30080).with(&annotation(80), Value::Null), taken(0, 30080));
    let (all, items) = services_of_the_host(&[stored("edge-hz", &[(80, 30080)], &[])]);
    agent.on(all, items);
    let given = stored("edge-ke", &[(80, 31234)], &[(80, 30080)]);
    let second = post().with("/spec/ports/0/nodePort", Value::Null).with(&annotation(80), "30080");
    agent.on(second, Reply::json(201, &given));
    let response = agent.send(ClientRequest::post(SERVICES, &service(&[(80, 30080)]))).await.expect(201);
    let shown = response.json();
    assert_eq!(shown["spec"]["ports"][0]["nodePort"], 30080, "{shown}");
    assert_eq!(shown["metadata"]["namespace"], "edge");
    let warnings = response.warnings();
    assert!(
        matches!(warnings[..], [warning] if warning.contains("30080 is in use") && warning.contains("31234")),
        "{warnings:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_port_of_the_same_cluster_is_refused() {
    let agent = Scripted::new().await;
    agent.on(post(), taken(0, 30080));
    let (all, items) = services_of_the_host(&[stored("default-ke", &[(80, 31111)], &[(80, 30080)])]);
    agent.on(all, items);
    let (code, reason, message) = agent.send(ClientRequest::post(SERVICES, &service(&[(80, 30080)]))).await.refusal();
    assert_eq!((code, &*reason), (422, "Invalid"));
    assert!(message.contains("30080: provided port is already allocated"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_port_is_replaced_once() {
    let agent = Scripted::new().await;
    agent.on(post(), taken(0, 30080));
    let (all, items) = services_of_the_host(&[]);
    agent.on(all, items);
    // Without the port, no host refuses it. If one does, that is no reason to try for ever.
    agent.on(post().with("/spec/ports/0/nodePort", Value::Null), taken(0, 30080));
    agent.send(ClientRequest::post(SERVICES, &service(&[(80, 30080)]))).await.expect(422);
}

/// The budget is 32 ports (`MAX_TAKEN_PORTS`).
#[tokio::test(start_paused = true)]
async fn so_many_ports_are_replaced() {
    const BUDGET: u16 = 32;
    for (count, code) in [(BUDGET, 201), (BUDGET + 1, 422)] {
        let agent = Scripted::new().await;
        let ports: Vec<_> = (0..count).map(|number| (80 + number, 30000 + number)).collect();
        for (number, &(_, node_port)) in ports.iter().enumerate() {
            agent.on(post(), taken(number, node_port));
            if number < usize::from(BUDGET) {
                let (all, items) = services_of_the_host(&[]);
                agent.on(all, items);
            }
        }
        if code == 201 {
            let first = post().with("/spec/ports/0/nodePort", Value::Null).with(&annotation(80), "30000");
            agent.on(first, Reply::json(201, &stored("edge-ke", &ports, &[])));
        }
        let response = agent.send(ClientRequest::post(SERVICES, &service(&ports))).await.expect(code);
        assert_eq!(response.warnings().len(), if code == 201 { usize::from(BUDGET) } else { 0 });
    }
}

/// Later writes with the same requested port get the port that the host has.
#[tokio::test(start_paused = true)]
async fn the_given_port_is_kept() {
    let agent = Scripted::new().await;
    let live = stored("edge-ke", &[(80, 31234)], &[(80, 30080)]);
    agent.on(expect("GET", &format!("{HOST_SERVICES}/web")).as_agent(), Reply::json(200, &live));
    let put = expect("PUT", &format!("{HOST_SERVICES}/web")).as_user("vc:ke:admin");
    agent.on(put.with("/spec/ports/0/nodePort", 31234).with(&annotation(80), "30080"), Reply::json(200, &live));
    let response =
        agent.send(ClientRequest::put(&format!("{SERVICES}/web"), &service(&[(80, 30080)]))).await.expect(200);
    assert_eq!(response.json()["spec"]["ports"][0]["nodePort"], 30080);
}

#[tokio::test(start_paused = true)]
async fn the_configuration_can_refuse_taken_ports() {
    let agent = Scripted::configured(&format!("{CONFIG}takenNodePorts: refuse\n")).await;
    agent.exchange(ClientRequest::post(SERVICES, &service(&[(80, 30080)])), post(), taken(0, 30080)).await.expect(422);
}

/// The host refuses the port for health checks with 500.
#[tokio::test(start_paused = true)]
async fn a_port_for_health_checks_is_replaced() {
    let agent = Scripted::new().await;
    let mut balanced = service(&[(80, 30080)]);
    balanced["spec"]["type"] = "LoadBalancer".into();
    balanced["spec"]["healthCheckNodePort"] = 30090.into();
    let why = "failed to allocate requested HealthCheck NodePort 30090: provided port is already allocated";
    agent.on(post().with("/spec/healthCheckNodePort", 30090), Reply::status(500, "InternalError", why));
    let (all, items) = services_of_the_host(&[]);
    agent.on(all, items);
    let second = post().with("/spec/healthCheckNodePort", Value::Null).with("/spec/ports/0/nodePort", 30080);
    let mut given = stored("edge-ke", &[(80, 30080)], &[]);
    given["spec"]["healthCheckNodePort"] = 31999.into();
    agent.on(second, Reply::json(201, &given));
    agent.send(ClientRequest::post(SERVICES, &balanced)).await.expect(201);
}
