use std::collections::HashSet;

use super::*;

#[test]
fn dashboards_are_consistent() {
    let mut ids = HashSet::new();
    for dashboard in dashboards().unwrap() {
        let (file, json) = (&dashboard.file, &dashboard.json);
        assert!(ids.insert(json["uid"].to_string()), "{file} has the uid of another dashboard");
        assert!(json["schemaVersion"].as_u64().is_some_and(|version| version >= 39), "{file}");
        let variables = json["templating"]["list"].as_array().unwrap();
        let names: Vec<_> = variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["datasource", "cluster"], "{file}");
        let (metric, label) = dashboard.variable().unwrap();
        assert!(metrics().unwrap()[metric].contains(label), "{file}: {metric} {label}");

        let all = json["panels"].as_array().unwrap();
        let numbers: HashSet<_> = all.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
        assert_eq!(numbers.len(), all.len(), "{file} has two panels with one id");
        for panel in dashboard.panels().unwrap() {
            let title = panel["title"].as_str().unwrap();
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{file}: {title}");
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{file}: {title}");
            let (x, w) = (panel["gridPos"]["x"].as_u64().unwrap(), panel["gridPos"]["w"].as_u64().unwrap());
            assert!(x + w <= 24, "{file}: {title} is outside the grid");
        }
    }
}

#[test]
fn queries_name_only_listed_metrics_and_their_labels() {
    let metrics = metrics().unwrap();
    for dashboard in dashboards().unwrap() {
        for query in dashboard.queries().unwrap() {
            check_names(&query.expr, &metrics).unwrap_or_else(|error| panic!("{}: {error:#}", query.panel));
        }
    }
    for alert in alerts().unwrap() {
        check_names(&alert.expr, &metrics).unwrap_or_else(|error| panic!("{}: {error:#}", alert.name));
    }
    let refused = |expr: &str| check_names(expr, &metrics).unwrap_err().to_string();
    assert!(refused("rate(atoll_request_total[5m])").contains("does not list `atoll_request_total`"));
    assert!(refused("atoll_peers{cluster=\"a\"}").contains("has no label"));
    assert!(refused("sum by (clutser) (atoll_cluster_ready)").contains("no metric has the label"));
    assert!(refused("vector(0)").contains("names no metric"));
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_an_alert() {
    let alerts = alerts().unwrap();
    let mut names: Vec<_> = alerts.iter().map(|alert| alert.name.clone()).collect();
    let mut runbooks = runbooks().unwrap();
    names.sort();
    runbooks.sort();
    assert_eq!(runbooks, names);
    for Alert { name, severity, annotations, .. } in &alerts {
        assert!(["critical", "warning"].contains(&severity.as_str()), "{name} has the severity {severity}");
        let keys: Vec<_> = annotations.keys().map(String::as_str).collect();
        assert_eq!(keys, ["description", "runbook_url", "summary"], "{name}");
        assert_eq!(annotations["runbook_url"], format!("docs/runbooks.md#{}", name.to_lowercase()), "{name}");
    }
}

/// A test of an alert would prove nothing with series that no process exports.
#[test]
fn tests_of_alerts_have_the_series_of_the_processes() {
    let (metrics, names) = (metrics().unwrap(), alerts().unwrap());
    for RuleTest { alerts, series } in rule_tests().unwrap() {
        for alert in alerts {
            assert!(names.iter().any(|known| known.name == alert), "there is no alert {alert}");
        }
        for text in series {
            let (metric, labels) = promql::names(&text).selectors.swap_remove(0);
            let known = &metrics[&metric];
            assert!(labels.is_subset(known), "{text}");
            let missing: Vec<_> = known.difference(&labels).filter(|label| *label != "namespace").collect();
            assert!(missing.is_empty(), "{text} has no {missing:?}");
        }
    }
}

/// Names of ports, labels, and the port of the process. So a `ServiceMonitor` finds the pods of the manifests.
#[test]
fn service_monitors_fit_the_manifests() {
    let documents = |path: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(paths::workspace().join(path)).unwrap();
        text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
    };
    for (program, folder) in [("proxy-agent", "agent"), ("proxy-server", "server")] {
        let [service, monitor] = &documents(&format!("configs/observability/service-monitor/{program}.yaml"))[..]
        else {
            panic!("{program}: not a Service and a ServiceMonitor");
        };
        let folder = format!("configs/kubernetes/{folder}");
        let deployment = &documents(&format!("{folder}/deployment.yaml"))[0];
        let config = &documents(&format!("{folder}/{program}.yaml"))[0];
        let policy = &documents(&format!("{folder}/network-policy.yaml"))[0];

        let pod = &deployment["spec"]["template"];
        assert_eq!(service["spec"]["selector"], pod["metadata"]["labels"]);
        let port = &service["spec"]["ports"][0];
        let ports = pod["spec"]["containers"][0]["ports"].as_array().unwrap();
        let opened = ports.iter().find(|opened| opened["name"] == port["targetPort"]).unwrap();
        assert_eq!(opened["containerPort"], port["port"]);
        let listener = config["listeners"]["metrics"].as_str().unwrap();
        assert_eq!(listener, format!("0.0.0.0:{}", port["port"]));
        let rules = policy["spec"]["ingress"].as_array().unwrap();
        let admits = |rule: &&Value| rule["ports"].as_array().unwrap().iter().any(|open| open["port"] == port["port"]);
        let rule = rules.iter().find(admits).unwrap();
        assert!(rule["from"][0]["namespaceSelector"]["matchLabels"].is_object(), "anybody may connect: {rule}");

        let selected = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
        let labels = service["metadata"]["labels"].as_object().unwrap();
        assert!(selected.iter().all(|(key, value)| labels.get(key) == Some(value)));
        assert_eq!(monitor["spec"]["endpoints"][0]["port"], port["name"]);
        let job = monitor["spec"]["jobLabel"].as_str().unwrap();
        assert_eq!(labels[job], program, "alerts.yaml assumes this job");
        assert_eq!(service["metadata"]["namespace"], monitor["metadata"]["namespace"]);
    }
}
