//! The API server refuses invalid objects, and says why.

use anyhow::ensure;
use atoll_tests::HostCluster;

use super::world::{define, object};

const MISTAKES: [(&str, &str, &str); 20] = [
    ("a.b", "{nodeGroup: x}", "metadata.name must be a DNS label"),
    ("aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff1234", "{nodeGroup: x}", "more than 63 bytes"),
    (
        "a",
        "{}",
        "set at least one of nodeSelector, nodeExpressions and nodeGroup: without any of them, the virtual cluster would own every node",
    ),
    ("a", "{nodeSelector: {}, nodeExpressions: []}", "set at least one of nodeSelector, nodeExpressions and nodeGroup"),
    ("a", "{nodeSelector: {atoll.node-restriction.kubernetes.io/b: 'true'}}", "are reserved for the agent"),
    (
        "a",
        "{nodeExpressions: [{key: atoll.node-restriction.kubernetes.io/b, operator: Exists}]}",
        "are reserved for the agent",
    ),
    ("a", "{nodeExpressions: [{key: tier, operator: In}]}", "values must not be empty when operator is In or NotIn"),
    ("a", "{nodeExpressions: [{key: tier, operator: Exists, values: [a]}]}", "must be empty otherwise"),
    ("a", "{nodeExpressions: [{key: tier, operator: Gt, values: ['1']}]}", "supported values: \"In\", \"NotIn\""),
    ("a", "{nodeSelector: {'lo cation': x}}", "each key must be the key of a label"),
    ("a", "{nodeSelector: {location: 'x y'}}", "each value must be the value of a label"),
    ("a", "{nodeGroup: x, nodeSelector: {apps.kubeedge.io/belonging-to: z}}", "differ, and no node has both"),
    ("a", "{nodeGroup: 'x y'}", "nodeGroup must be the name of a NodeGroup"),
    ("a", "{nodeGroup: x, tolerations: [{}]}", "operator must be Exists when key is empty"),
    (
        "a",
        "{nodeGroup: x, tolerations: [{key: k, operator: Exists, value: v}]}",
        "value must be empty when operator is Exists",
    ),
    ("a", "{nodeGroup: x, hostTokens: {prefix: 'system:'}}", "names that begin with system: or host: are reserved"),
    ("a", "{nodeGroup: x, externalIPs: [everything]}", "an address range is NETWORK/PREFIX"),
    ("a", "{nodeGroup: x, shares: {objectsOf: {Secrets: 1}}}", "each key must be a resource"),
    ("a", "{nodeGroup: x, deletionPolicy: Keep}", "supported values: \"Orphan\", \"Delete\""),
    ("a", "{nodeGroup: x, nodes: 3}", "unknown field \"spec.nodes\""),
];

pub(super) fn objects_are_refused() -> anyhow::Result<()> {
    let host = HostCluster::up(1)?;
    define(&host)?;
    let kubectl = host.kubectl();
    for (name, spec, expect) in MISTAKES {
        let refused = kubectl.run_with(&["create", "-f", "-"], &object(name, spec))?;
        ensure!(refused.code != 0 && refused.stderr.contains(expect), "{name} {spec}: no {expect:?} in {refused:?}");
    }
    // The largest name and every key.
    let all = "{nodeSelector: {example.com/a: b, c: ''}, nodeGroup: x, \
               nodeExpressions: [{key: a.io/b, operator: In, values: [a, '']}, {key: c, operator: DoesNotExist}], \
               podSecurity: {enforce: baseline}, \
               tolerations: [{operator: Exists}, {key: a, value: b, effect: NoExecute, tolerationSeconds: 3}], \
               hostTokens: {prefix: ''}, externalIPs: [203.0.113.0/24, '2001:db8::/64'], deletionPolicy: Delete, \
               shares: {namespaces: 1, objects: 2, objectsOf: {secrets: 1, deployments.apps: 1}, storageMiB: 3, writtenMiB: 4}}";
    kubectl.ok_with(&["create", "-f", "-"], &object(&"a".repeat(63), all))?;
    Ok(())
}
