use std::path::Path;

use super::*;

fn problems(yaml: &str) -> Vec<String> {
    let text = format!("apiVersion: atoll.dev/v1alpha1\nkind: ProxyServerConfiguration\n{yaml}");
    match ops::config::parse::<ProxyServerConfiguration>(&text, Path::new("c.yaml")) {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .problems()
            .iter()
            .map(|problem| {
                let line = problem.location().map_or(0, ops::config::Location::line);
                format!("{line}: {}", problem.message())
            })
            .collect(),
    }
}

const CA: &str = "servingCA: {certificate: s.crt, key: s.key}\nagentCA: {certificate: a.crt}\n";

#[test]
fn the_smallest_configuration() {
    assert_eq!(problems(CA), Vec::<String>::new());
}

#[test]
fn every_mistake_is_told_with_its_line() {
    let yaml = format!(
        "{CA}domain: -x
listeners:
  proxy: 0.0.0.0:8090
  admin: 10.0.0.1:8095
clusters:
- {{name: a, agents: [s]}}
- {{name: b, agents: [], mode: physical, apiServer: 10.0.0.1:6443}}
- {{name: c, agents: [s], mode: physical, apiServer: 10.0.0.1:6443}}
- {{name: c, agents: [s], mode: physical}}
"
    );
    let found = problems(&yaml);
    let expect = [
        "5: domain `-x`",
        "7: the proxy listener is plain HTTP beyond loopback",
        "8: the admin listener",
        "10: virtual cluster a needs a clientCA",
        "11: cluster b needs at least one agent",
        "13: physical cluster c needs its apiServer",
        "13: cluster c is listed twice",
    ];
    assert_eq!(found.len(), expect.len(), "{found:#?}");
    for (found, expect) in found.iter().zip(expect) {
        assert!(found.starts_with(expect), "{found} / {expect}");
    }
}

#[test]
fn limits_that_limit_nothing_or_everything_are_mistakes() {
    let yaml = format!(
        "{CA}limits:
  connections: 0
  streamsPerConnection: 0
  streamsPerUser: 3000
  streamsPerAddress: 0
"
    );
    let expect = [
        "6: limits.connections must be at least 1",
        "7: limits.streamsPerConnection must be between 1 and 1000",
        "8: limits.streamsPerUser exceeds limits.streamsPerCluster (2500), so it has no effect",
        "9: limits.streamsPerAddress must be at least 1",
    ];
    assert_eq!(problems(&yaml), expect);
    assert_eq!(problems(&format!("{CA}limits: {{streamsPerCluster: 10001}}\n")).len(), 1);
    assert_eq!(problems(&format!("{CA}limits: {{connections: 100}}\n")), Vec::<String>::new());
}

#[test]
fn an_unknown_key_is_a_mistake() {
    let found = problems(&format!("{CA}listners: {{}}\n"));
    assert!(found[0].starts_with("5: ") && found[0].contains("listners"), "{found:?}");
}

#[test]
fn what_is_said_of_karmada_must_fit() {
    let yaml = format!(
        "{CA}clusters:
- {{name: a, agents: [s], clientCA: {{certificate: a.crt}}}}
- {{name: b, agents: [s], mode: physical, apiServer: 10.0.0.1:6443}}
- {{name: {}, agents: [s], clientCA: {{certificate: a.crt}}}}
karmada:
  kubeconfig: karmada.kubeconfig
  keptBy: '-'
  clusters: [a, b, c, 'long*']
  through: endpoint
  url: http://proxy:8090
  members:
  - {{name: b}}
  - {{name: a, labels: {{atoll.dev/kept-by: me}}}}
  - {{name: a, zones: ['']}}
",
        "long".repeat(13)
    );
    let found = problems(&yaml);
    let expect = [
        "8: long",
        "11: karmada.keptBy must be",
        "12: karmada.clusters: `b` is not a virtual cluster",
        "12: karmada.clusters: `c` is not a virtual cluster",
        "14: karmada.url must be of the form https",
        "16: karmada.members: karmada.clusters does not select b",
        "17: karmada.members: `atoll.dev/kept-by: me` cannot be a label",
        "18: karmada.members: a is listed twice",
        "18: karmada.members: provider, region and zones",
    ];
    assert_eq!(found.len(), expect.len(), "{found:#?}");
    for (found, expect) in found.iter().zip(expect) {
        assert!(found.starts_with(expect), "{found} / {expect}");
    }
    let unknown =
        problems(&format!("{CA}karmada: {{kubeconfig: k, keptBy: a, clusters: [], url: 'http://p', via: x}}\n"));
    assert!(unknown[0].contains("via"), "{unknown:?}");
}
