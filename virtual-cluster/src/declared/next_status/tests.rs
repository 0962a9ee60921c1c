use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::*;
use crate::declared::Reach;
use crate::declared::kubeconfigs::{IssueError, Reason, SeenKubeconfig};
use crate::provisioner::ProvisionState;

fn moment(seconds: u64) -> Moment {
    (SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).into()
}

fn object(generation: i64, status: &Value) -> Declared {
    serde_json::from_value(json!({"metadata": {"name": "a", "uid": "u", "generation": generation}, "status": status}))
        .unwrap()
}

fn facts() -> Facts {
    Facts {
        provisioned: ProvisionState::Provisioned,
        not_admitted: None,
        weakness: None,
        reach: Reach::Served { refused: None },
        endpoint: None,
        node_selector: "a=b".to_owned(),
        node_label_failure: None,
        nodes: 2,
        namespaces: 4,
        shared_with: BTreeMap::new(),
        last_error: None,
        kubeconfig: None,
    }
}

fn serving() -> Ready {
    Ready { is_ready: true, reason: "Serving", message: "yes".to_owned(), is_preliminary: false }
}

#[test]
fn a_status_is_written_only_if_it_changes() {
    let first = next_status(&object(1, &Value::Null), &serving(), Some(&facts()), moment(1)).unwrap();
    assert_eq!((first.observed_generation, first.nodes, first.namespaces), (1, 2, 4));
    let stored = serde_json::to_value(&first).unwrap();
    assert_eq!(stored["conditions"][0]["type"], "Ready");
    assert_eq!(next_status(&object(1, &stored), &serving(), Some(&facts()), moment(2)), None);

    // The message and the generation change, and the condition does not.
    let ready = Ready { message: "still".to_owned(), ..serving() };
    let second = next_status(&object(2, &stored), &ready, Some(&facts()), moment(3)).unwrap();
    assert_eq!(second.condition(READY).unwrap().last_transition_time, moment(1));
    assert_eq!(second.condition(READY).unwrap().observed_generation, 2);

    let ready = Ready { is_ready: false, reason: "NoTunnel", ..serving() };
    let third = next_status(&object(2, &stored), &ready, Some(&facts()), moment(4)).unwrap();
    assert_eq!(third.condition(READY).unwrap().last_transition_time, moment(4));
    assert_eq!(third.condition(OVERLAPPING).unwrap().last_transition_time, moment(1));
}

#[test]
fn shared_nodes_are_named() {
    let shared_with = (0..12).map(|number| (format!("c{number:02}"), format!("n{number}"))).collect();
    let status =
        next_status(&object(1, &Value::Null), &serving(), Some(&Facts { shared_with, ..facts() }), moment(1)).unwrap();
    let overlapping = status.condition(OVERLAPPING).unwrap();
    assert_eq!((overlapping.status.as_str(), overlapping.reason.as_str()), ("True", "SharedNodes"));
    assert!(overlapping.message.contains("c00 (such as n0)") && overlapping.message.contains("and 2 others"));
}

#[test]
fn the_newest_error_of_all_replicas_stays() {
    let error = |seconds, message: &str| LastError { time: moment(seconds), code: 500, message: message.to_owned() };
    let with = |last_error| Facts { last_error, ..facts() };
    let first = with(Some(error(5, &"x".repeat(1000))));
    let first = next_status(&object(1, &Value::Null), &serving(), Some(&first), moment(9)).unwrap();
    assert_eq!(first.last_error.as_ref().unwrap().message.len(), MAX_ERROR);
    let stored = object(1, &serde_json::to_value(&first).unwrap());
    for older in [None, Some(error(4, "older"))] {
        assert_eq!(next_status(&stored, &serving(), Some(&with(older)), moment(9)), None);
    }
    let newer = next_status(&stored, &serving(), Some(&with(Some(error(6, "newer")))), moment(9)).unwrap();
    assert_eq!(newer.last_error.unwrap().message, "newer");
}

#[test]
fn a_status_of_another_form_is_replaced() {
    for status in [json!(1), json!({"conditions": "x"}), json!({"conditions": [{"type": "Ready"}]})] {
        assert!(next_status(&object(1, &status), &serving(), None, moment(1)).is_some());
    }
}

#[test]
fn the_kubeconfig_is_told() {
    let with = |state: Option<KubeconfigState>| Facts {
        kubeconfig: state.map(|state| SeenKubeconfig { uid: "u".to_owned(), generation: 1, state }),
        endpoint: Some("https://a.atoll.internal:443".to_owned()),
        ..facts()
    };
    let issued =
        KubeconfigState::Issued { namespace: "atoll".into(), name: "a-kubeconfig".to_owned(), expiry: moment(9) };
    let first =
        next_status(&object(1, &Value::Null), &serving(), Some(&with(Some(issued.clone()))), moment(1)).unwrap();
    assert!(first.condition(KUBECONFIG_ISSUED).unwrap().status == "True" && first.endpoint.is_some());
    let stored = serde_json::to_value(&first).unwrap();
    assert_eq!(stored["kubeconfigSecret"], json!({"namespace": "atoll", "name": "a-kubeconfig"}));

    let failed = KubeconfigState::Failed(IssueError { reason: Reason::Unavailable, message: "no".to_owned() });
    let failed = Facts { endpoint: None, ..with(Some(failed)) };
    let second = next_status(&object(1, &stored), &serving(), Some(&failed), moment(2)).unwrap();
    assert_eq!((&second.kubeconfig_secret, &second.endpoint), (&first.kubeconfig_secret, &first.endpoint));
    assert_eq!(second.condition(KUBECONFIG_ISSUED).unwrap().reason, "Unavailable");

    let third = next_status(&object(1, &stored), &serving(), Some(&with(None)), moment(3)).unwrap();
    assert!(third.kubeconfig_secret.is_none() && third.condition(KUBECONFIG_ISSUED).is_none());

    // Right after a restart, the agent does not know the state of a kubeconfig yet.
    let spec = json!({"nodeSelector": {"a": "b"}, "kubeconfig": {"user": "jane"}});
    let asking = json!({"metadata": {"name": "a", "uid": "u", "generation": 1}, "spec": spec, "status": stored});
    let asking = serde_json::from_value(asking).unwrap();
    assert_eq!(next_status(&asking, &serving(), Some(&with(None)), moment(3)), None);

    // What it knows is about the former generation.
    let status = next_status(&object(2, &stored), &serving(), Some(&with(Some(issued))), moment(3)).unwrap();
    assert_eq!(status.observed_generation, 2);
    assert!(status.condition(KUBECONFIG_ISSUED).is_none(), "this generation asks for none");
}
