//! The nodes of the pods of a virtual cluster.

use rewrite::name::{CLUSTER_LABEL, METADATA_NAME_LABEL};
use serde_json::{Value, json};

use super::vocabulary::{annotation, in_members};
use crate::admission_policies::policy::{rule, validation_saying, variable};
use crate::namespaces::annotations::{NODE_SELECTOR, TOLERATIONS};

/// The node selector as text, and as pairs of key and value.
fn selector() -> [Value; 2] {
    [
        variable("selector", &annotation(NODE_SELECTOR)),
        variable("pairs", "variables.selector == '' ? [] : variables.selector.split(',').map(pair, pair.split('='))"),
    ]
}

/// Every pod has the node selector, regardless of its creator. In a namespace without a node selector, nobody can
/// create a pod. An existing pod may keep its selector, so that its labels and finalizers stay writable.
///
/// No affinity of a pod affects pods of other virtual clusters, or depends on them: see [`confined`].
pub(super) fn required() -> Value {
    let has_selector = "variables.selector != '' && variables.pairs.all(pair, object.spec.?nodeSelector[?pair[0]] == optional.of(pair[1]))";
    let message = format!(
        "variables.selector == '' \
         ? 'the namespace has no node selector yet: the proxy-agent of its virtual cluster writes the annotation \
            {NODE_SELECTOR}' \
         : 'a pod of virtual cluster ' + namespaceObject.metadata.labels['{CLUSTER_LABEL}'] + ' needs the node selector ' \
           + variables.selector + '; objects that are written through the endpoint of the virtual cluster get it'"
    );
    let [selector, pairs] = selector();
    let [cluster, terms, confined] = confined();
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": in_members(&[rule("", &["pods"], &["CREATE", "UPDATE"])]),
        "variables": [selector, pairs, cluster, terms],
        "validations": [
            validation_saying(
                &format!("{has_selector} || oldObject != null && object.spec.?nodeSelector == oldObject.spec.?nodeSelector"),
                &message,
                "a pod of a virtual cluster needs the cluster's node selector",
            ),
            confined,
        ],
    })
}

/// Affinity terms select only pods of the virtual cluster, by the requirement that the engine adds to each
/// namespaceSelector. The scheduler does not place a new pod on a node where its labels match a required anti-affinity
/// term of an existing pod (`satisfyExistingPodsAntiAffinity` in pkg/scheduler/framework/plugins/interpodaffinity).
/// Terms of an existing pod are immutable.
///
/// A shortened host name does not end with the name of its virtual cluster, so `namespaces` cannot contain it. A
/// namespaceSelector can select it.
fn confined() -> [Value; 3] {
    let terms = "[object.spec.?affinity.?podAffinity, object.spec.?affinity.?podAntiAffinity].map(it, \
        it.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]) \
        + it.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).map(weighted, weighted.podAffinityTerm))";
    let are_confined = format!(
        "request.operation != 'CREATE' || variables.terms.all(list, list.all(term, \
         term.?namespaces.orValue([]).all(it, it == request.namespace || it.endsWith('-' + variables.cluster)) \
         && (!has(term.namespaceSelector) || term.namespaceSelector.?matchExpressions.orValue([]).exists(it, \
             it.key == '{CLUSTER_LABEL}' && it.operator == 'In' && it.values == [variables.cluster]))))"
    );
    [
        variable("cluster", &format!("namespaceObject.metadata.labels['{CLUSTER_LABEL}']")),
        variable("terms", terms),
        validation_saying(
            &are_confined,
            &format!(
                "'affinity terms select pods of the virtual cluster only: each namespaceSelector needs the requirement \
                 {CLUSTER_LABEL} In [' + variables.cluster + '], which the endpoint adds; a namespace with a long name is \
                 selected by the label {METADATA_NAME_LABEL}'"
            ),
            "affinity terms select pods of the virtual cluster only",
        ),
    ]
}

/// The host adds the node selector and the tolerations to every new pod.
pub(super) fn added() -> Value {
    let add_selector = "(variables.pairs.size() == 0 || object.spec.?nodeSelector.orValue({}).size() > 0 ? [] \
          : [JSONPatch{op: 'add', path: '/spec/nodeSelector', value: {}}]) \
        + variables.pairs.map(pair, JSONPatch{\
            op: 'add', path: '/spec/nodeSelector/' + jsonpatch.escapeKey(pair[0]), value: pair[1]})";
    let tolerations = annotation(TOLERATIONS);
    // Key, operator, value, effect, seconds.
    let missing = "variables.tolerations == '' ? [] : variables.tolerations.split(',').map(own, own.split(':'))\
        .filter(own, !object.spec.?tolerations.orValue([]).exists(it, \
            it.?key.orValue('') == own[0] \
            && it.?operator.orValue('Equal') == own[1] \
            && it.?value.orValue('') == own[2] \
            && it.?effect.orValue('') == own[3]))";
    let add_tolerations = "(variables.missing.size() == 0 || has(object.spec.tolerations) ? [] \
          : [JSONPatch{op: 'add', path: '/spec/tolerations', value: []}]) \
        + variables.missing.map(own, JSONPatch{op: 'add', path: '/spec/tolerations/-', value: {\
            'key': dyn(own[0]), 'operator': dyn(own[1]), 'value': dyn(own[2]), 'effect': dyn(own[3]), \
            ?'tolerationSeconds': own[4] == '' ? optional.none() : optional.of(dyn(int(own[4])))}})";
    let [selector, pairs] = selector();
    json!({
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": in_members(&[rule("", &["pods"], &["CREATE"])]),
        "variables": [selector, pairs, variable("tolerations", &tolerations), variable("missing", missing)],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": add_selector}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": add_tolerations}},
        ],
    })
}
