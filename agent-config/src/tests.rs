use std::path::Path;

use super::*;

fn parse(yaml: &str) -> Result<ProxyAgentConfiguration, ops::config::ConfigErrors> {
    let text = format!(
        "apiVersion: atoll.dev/v1alpha1\nkind: ProxyAgentConfiguration\n\
         identity: {{certificate: a.crt, key: a.key, serverCA: s.crt}}\n{yaml}"
    );
    ops::config::parse(&text, Path::new("/etc/atoll/agent.yaml"))
}

#[test]
fn paths_are_relative_to_the_file() {
    let config = parse("servers: [proxy:8091]\nphysicalClusters: [{name: b, apiServer: 10.2.0.1:6443}]\n").unwrap();
    assert_eq!(config.identity.key.as_path(), Path::new("/etc/atoll/a.key"));
    assert_eq!(config.offers().len(), 1);
}

#[test]
fn every_mistake_is_reported_with_its_line() {
    let yaml = "servers: []
virtualClusters:
- {name: a, nodeSelector: {}}
- {name: a, nodeSelector: {location: x}}
- {name: b, nodeGroup: ''}
- {name: c, nodeGroup: x, nodeSelector: {apps.kubeedge.io/belonging-to: y}}
- {name: b-c, nodeSelector: {location: x}}
- {name: xc, nodeSelector: {location: x}, shares: {objectsOf: {secrets: 1, deployments.apps: 1, Secrets: 1}}}
physicalClusters: [{name: d-c, apiServer: 10.2.0.1:6443}]
destinations: [everything]
customResources:
- {resource: widgets, objects: read}
- {resource: widgets, objects: hidden}
- {resource: gears.example.com, objects: shared}
- {resource: cogs.example.com, objects: shared}
- {resource: virtualclusters.atoll.dev, objects: read}
sharedObjects: {writable: [cogs.example.com, wheels.example.com]}
";
    let errors = parse(yaml).unwrap_err().to_string();
    for expect in [
        ":6:3: virtual cluster a has no nodeSelector",
        ":7:3: cluster a is listed twice",
        ":8:3: virtual cluster b has an empty nodeGroup",
        ":9:3: virtual cluster c has nodeGroup x and",
        ":10:3: the name of virtual cluster b-c ends with `-c`",
        ":11:3: shares.objectsOf: `Secrets` is not a resource",
        ":13:16: not a destination",
        ":15:3: `widgets` is not the name of a CustomResourceDefinition",
        ":16:3: widgets is listed twice",
        ":17:3: `objects: shared` lets virtual clusters write gears.example.com",
        ":19:3: virtualclusters.atoll.dev belongs to Atoll",
        ":20:46: virtual clusters cannot write `wheels.example.com`",
        "`servers` is empty",
        "need a `host`",
    ] {
        assert!(errors.contains(expect), "{expect} in {errors}");
    }
    // A physical cluster has no names on the host.
    assert_eq!(errors.matches("ends with").count(), 1, "{errors}");
}

#[test]
fn objects_of_the_host_are_enough_to_serve() {
    let config = parse("servers: [proxy:8091]\nhost: {inCluster: true}\nwatchVirtualClusters: true\n").unwrap();
    assert!(config.watch_virtual_clusters && config.offers().is_empty());
    assert_eq!(std::time::Duration::from(config.virtual_cluster_deletion_delay).as_secs(), 120);
    let errors = parse("servers: [proxy:8091]\nwatchVirtualClusters: true\n").unwrap_err().to_string();
    assert!(errors.contains("need a `host`"), "{errors}");
}

#[test]
fn a_node_group_is_one_label_more() {
    let config = parse(
        "servers: [proxy:8091]\nhost: {inCluster: true}\n\
         virtualClusters: [{name: a, nodeGroup: beijing}, {name: b, nodeGroup: x, nodeSelector: {disk: ssd}}]\n",
    )
    .unwrap();
    let labels = |number: usize| config.virtual_clusters[number].labels().into_iter().collect::<Vec<_>>();
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(labels(0), [label("apps.kubeedge.io/belonging-to", "beijing")]);
    assert_eq!(labels(1), [label("apps.kubeedge.io/belonging-to", "x"), label("disk", "ssd")]);
}

#[test]
fn expressions_become_a_label_of_the_agent() {
    let config = parse(
        "servers: [proxy:8091]\nhost: {inCluster: true}\n\
         virtualClusters: [{name: a, nodeSelector: {disk: ssd}, nodeExpressions: [{key: tier, operator: NotIn, values: [x]}]}]\n",
    )
    .unwrap();
    let cluster = &config.virtual_clusters[0];
    let labels: Vec<_> = cluster.labels().into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(labels, ["atoll.node-restriction.kubernetes.io/a=true", "disk=ssd"]);
    assert_eq!(cluster.configured_selector().unwrap().to_string(), "disk=ssd,tier notin (x)");
    // A kubelet may set `disk`, and not set `tier`.
    assert!(cluster.trusts_nodes());
    assert_eq!(cluster.selecting_keys().into_iter().collect::<Vec<_>>(), ["disk", "tier"]);
    for (cluster, expect) in [
        ("nodeSelector: {}, nodeExpressions: []", "it would own every node"),
        ("nodeSelector: {atoll.node-restriction.kubernetes.io/b: 'true'}", "is reserved for the agent"),
        (
            "nodeExpressions: [{key: atoll.node-restriction.kubernetes.io/b, operator: DoesNotExist}]",
            "is reserved for the agent",
        ),
        ("nodeExpressions: [{key: a, operator: Gt}]", "`Gt` is not one of"),
    ] {
        let text =
            format!("servers: [proxy:8091]\nhost: {{inCluster: true}}\nvirtualClusters: [{{name: a, {cluster}}}]\n");
        let errors = parse(&text).unwrap_err().to_string();
        assert!(errors.contains(expect), "{errors}");
    }
}

#[test]
fn kubelets_cannot_satisfy_an_expression_for_a_label_of_the_administrator() {
    let cluster = |expression: &str| {
        let text = format!(
            "servers: [proxy:8091]\nhost: {{inCluster: true}}\n\
             virtualClusters: [{{name: a, nodeExpressions: [{{key: node-restriction.kubernetes.io/site, {expression}}}]}}]\n"
        );
        parse(&text).unwrap().virtual_clusters[0].trusts_nodes()
    };
    assert!(!cluster("operator: In, values: [x]"));
    assert!(!cluster("operator: Exists"));
    assert!(cluster("operator: DoesNotExist"));
    assert!(cluster("operator: NotIn, values: [x]"));
}
