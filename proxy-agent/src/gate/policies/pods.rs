//! On which nodes the pods of a virtual cluster run.

use rewrite::name::CLUSTER_LABEL;
use serde_json::{Value, json};

use super::vocabulary::{annotation, in_members};
use crate::gate::policy::{rule, validation_saying, variable};
use crate::namespaces::annotations::{NODE_SELECTOR, TOLERATIONS};

/// The node selector as text, and as pairs of key and value.
fn selector() -> [Value; 2] {
    [
        variable("selector", &annotation(NODE_SELECTOR)),
        variable("pairs", "variables.selector == '' ? [] : variables.selector.split(',').map(pair, pair.split('='))"),
    ]
}

/// Every pod has the node selector, whoever creates it. In a namespace that does not say one, there is no new pod. An
/// existing pod may keep the selector that it has, so that its labels and finalizers stay writable.
pub(super) fn required() -> Value {
    let has_selector = "variables.selector != '' && variables.pairs.all(pair, object.spec.?nodeSelector[?pair[0]] == optional.of(pair[1]))";
    let message = format!(
        "variables.selector == '' \
         ? 'the namespace does not say on which nodes its pods run: the proxy-agent of its virtual cluster writes the \
            annotation {NODE_SELECTOR}' \
         : 'a pod of virtual cluster ' + namespaceObject.metadata.labels['{CLUSTER_LABEL}'] + ' needs the node selector ' \
           + variables.selector + '; an object that was made through the cluster\\'s endpoint has it, and gets a changed one \
           when it is written again'"
    );
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": in_members(&[rule("", &["pods"], &["CREATE", "UPDATE"])]),
        "variables": selector(),
        "validations": [validation_saying(
            &format!("{has_selector} || oldObject != null && object.spec.?nodeSelector == oldObject.spec.?nodeSelector"),
            &message,
            "a pod of a virtual cluster needs the cluster's node selector",
        )],
    })
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
