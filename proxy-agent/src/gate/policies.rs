//! What stands on the host: three policies for all virtual clusters, and one or two for each.
//!
//! `tests/real` tries these expressions on a kube-apiserver, but for tolerations. Words that they share: *through* an
//! endpoint came what carries a group of the cluster's that the agent alone gives; *everywhere* may write who may do so
//! without a namespace, which is what the host's controllers and administrators can and nobody in a virtual cluster
//! (RoleBindings are all that its users have).

use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL};
use rewrite::request::PROTECTED;
use rewrite::{ClusterName, Guard, HostNamespace};
use serde_json::{Value, json};

use super::Slice;
use super::policy::{Kind, Object, literal, rule, validation, variable};
use super::served::Served;
use crate::root::ROOT_LABEL;

/// Everything that should be there, in the order in which it is made.
pub(super) fn all(served: Served, slices: &[Slice]) -> Vec<Object> {
    let mut objects = Vec::new();
    if let Some(version) = served.validating {
        let shared =
            [("namespaces.atoll.dev", namespaces()), ("roots.atoll.dev", roots()), ("nodes.atoll.dev", nodes())];
        for (name, spec) in shared {
            objects.extend(Kind::Validating.objects(version, name, &spec));
        }
        for slice in slices {
            objects.extend(Kind::Validating.objects(version, &name(&slice.cluster), &pods(slice)));
        }
    }
    if let Some(version) = served.mutating {
        for slice in slices {
            objects.extend(Kind::Mutating.objects(version, &name(&slice.cluster), &guarding(slice)));
        }
    }
    objects
}

/// What the policies of one virtual cluster are called.
pub(super) fn name(cluster: &ClusterName) -> String {
    format!("pods.{cluster}.atoll.dev")
}

/// Whether the user may do this to every object of the kind.
fn everywhere() -> Value {
    variable(
        "everywhere",
        "authorizer.group(request.resource.group).resource(request.resource.resource)\
         .subresource(request.?subResource.orValue(''))\
         .check(request.operation == 'UPDATE' ? 'update' : request.operation == 'DELETE' ? 'delete' : 'create')\
         .allowed()",
    )
}

/// Whether the request came through the endpoint of the cluster that `label` of its namespace names.
fn through(label: &str) -> Value {
    let group = format!("'vc:' + namespaceObject.metadata.labels['{label}'] + ':system:authenticated'");
    variable("through", &format!("({group}) in request.userInfo.groups"))
}

/// Labels are what membership is; finalizers are what keeps a namespace until it is empty.
fn namespaces() -> Value {
    let ours = format!(
        "[object, oldObject].exists(it, it != null && has(it.metadata.labels) \
         && ('{CLUSTER_LABEL}' in it.metadata.labels || '{ROOT_LABEL}' in it.metadata.labels))"
    );
    // As it was: who may write it does not follow from what he writes.
    let labels = "[oldObject, object].filter(it, it != null).map(it, it.?metadata.?labels.orValue({}))[0]";
    let through = format!(
        "['{CLUSTER_LABEL}', '{ROOT_LABEL}'].exists(key, key in variables.labels \
         && ('vc:' + variables.labels[key] + ':system:authenticated') in request.userInfo.groups)"
    );
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}, "resourceRules": [
            rule("", &["namespaces", "namespaces/finalize", "namespaces/status"], &["CREATE", "UPDATE", "DELETE"]),
        ]},
        "matchConditions": [{"name": "ours", "expression": ours}],
        "variables": [variable("labels", labels), variable("through", &through), everywhere()],
        "validations": [
            validation(
                "variables.through || variables.everywhere",
                "a namespace of a virtual cluster is written through the cluster's endpoint, or by who may write every \
                 namespace",
            ),
            validation(
                &format!("request.operation != 'UPDATE' || variables.everywhere || {} && {}", kept("labels"), kept("annotations")),
                "the labels and annotations that make a namespace a virtual cluster's, or decide what may run in it, stay \
                 as they are",
            ),
        ],
    })
}

/// That an update leaves those of the labels or annotations alone that clients must not write. The engine sees to it for
/// what comes through the endpoint; this holds also for what it did not understand.
fn kept(field: &str) -> String {
    let ours = [CLUSTER_LABEL, NAMESPACE_LABEL, ROOT_LABEL];
    let protected = ours.iter().chain(&PROTECTED).map(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => format!("key.startsWith({})", literal(prefix)),
        None => format!("key == {}", literal(pattern)),
    });
    let is_free = format!("!({})", protected.collect::<Vec<_>>().join(" || "));
    let of = |object: &str| format!("{object}.?metadata.?{field}.orValue({{}})");
    let (before, after) = (of("oldObject"), of("object"));
    format!(
        "{before}.all(key, {is_free} || key in {after} && {after}[key] == {before}[key]) \
         && {after}.all(key, {is_free} || key in {before})"
    )
}

/// A cluster's root namespace holds what is true in all of it, and no pod ever.
fn roots() -> Value {
    let rule = rule("*", &["*/*"], &["CREATE", "UPDATE", "DELETE", "CONNECT"]);
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent", "objectSelector": {},
            "namespaceSelector": {"matchExpressions": [{"key": ROOT_LABEL, "operator": "Exists"}]},
            "resourceRules": [rule],
        },
        "variables": [through(ROOT_LABEL), everywhere()],
        "validations": [validation(
            "variables.through || variables.everywhere",
            "what a virtual cluster has cluster-wide is written through the cluster's endpoint",
        )],
    })
}

/// A pod gets its node from a scheduler, which heeds the guard. Who names one says it through the endpoint, where the
/// node is looked at; a controller of the host passes on what was said there.
fn nodes() -> Value {
    let all = ["CREATE", "UPDATE"];
    let rules = [
        rule("", &["bindings", "pods", "pods/binding", "podtemplates", "replicationcontrollers"], &all),
        rule("apps", &["daemonsets", "deployments", "replicasets", "statefulsets"], &all),
        rule("batch", &["cronjobs", "jobs"], &all),
    ];
    let named = "[object, oldObject].map(it, it == null ? '' : it.?spec.?nodeName\
        .or(it.?spec.?template.?spec.?nodeName)\
        .or(it.?template.?spec.?nodeName)\
        .or(it.?spec.?jobTemplate.?spec.?template.?spec.?nodeName)\
        .orValue(''))";
    let binds = "request.resource.resource == 'bindings' || request.?subResource.orValue('') == 'binding'";
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent", "objectSelector": {},
            "namespaceSelector": {"matchExpressions": [{"key": CLUSTER_LABEL, "operator": "Exists"}]},
            "resourceRules": rules,
        },
        "variables": [
            variable("named", named), variable("binds", binds), through(CLUSTER_LABEL), everywhere(),
        ],
        "validations": [validation(
            "!(variables.binds || variables.named[0] != '' && variables.named[0] != variables.named[1]) \
             || variables.through || variables.everywhere",
            "a pod of a virtual cluster gets its node from a scheduler; to name one, use the cluster's endpoint",
        )],
    })
}

/// Every pod carries the guard, whoever makes it. A pod from before may keep what it has: labels and finalizers of it
/// must stay writable. What else is refused shows that the policy is in force (see [`probe`](super::probe)).
fn pods(slice: &Slice) -> Value {
    let selector = selector(&slice.guard);
    let root = literal(HostNamespace::root(&slice.cluster).as_str());
    let message = format!(
        "a pod of virtual cluster {} needs the node selector {}; an object that was made through the cluster's endpoint \
         has it, and gets a changed one when it is written again",
        slice.cluster,
        slice.guard.selector().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","),
    );
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": within(slice, &[rule("", &["pods"], &["CREATE", "UPDATE"]), rule("", &["namespaces"], &["CREATE"])]),
        "variables": [variable("guard", &selector), variable("pod", "request.resource.resource == 'pods'")],
        "validations": [
            validation(
                "!variables.pod \
                 || variables.guard.all(key, object.?spec.?nodeSelector[?key].orValue('') == variables.guard[key]) \
                 || oldObject != null && oldObject.?spec.?nodeSelector.orValue({}) == object.?spec.?nodeSelector.orValue({})",
                &message,
            ),
            validation(
                &format!("variables.pod || object.metadata.name != {root}"),
                "the root namespace of a virtual cluster is not one of its namespaces",
            ),
        ],
    })
}

/// The host puts the guard into every pod.
fn guarding(slice: &Slice) -> Value {
    let add_selector = "object.?spec.?nodeSelector.orValue({}).size() == 0 \
        ? [JSONPatch{op: 'add', path: '/spec/nodeSelector', value: variables.guard}] \
        : variables.guard.map(key, JSONPatch{\
            op: 'add', path: '/spec/nodeSelector/' + jsonpatch.escapeKey(key), value: variables.guard[key]})";
    let mut mutations = vec![json!({"patchType": "JSONPatch", "jsonPatch": {"expression": add_selector}})];
    let mut variables = vec![variable("guard", &selector(&slice.guard))];
    let tolerations: Vec<_> = slice.guard.tolerated().map(toleration).collect();
    // An empty list has no type in CEL.
    if !tolerations.is_empty() {
        variables.push(variable("tolerations", &format!("[{}]", tolerations.join(", "))));
        let add = "(has(object.spec.tolerations) ? [] : [JSONPatch{op: 'add', path: '/spec/tolerations', value: []}]) \
            + variables.tolerations.filter(own, !object.?spec.?tolerations.orValue([]).exists(it, \
                it.?key.orValue('') == own.?key.orValue('') \
                && it.?operator.orValue('Equal') == own.?operator.orValue('Equal') \
                && it.?value.orValue('') == own.?value.orValue('') \
                && it.?effect.orValue('') == own.?effect.orValue('')))\
            .map(own, JSONPatch{op: 'add', path: '/spec/tolerations/-', value: own})";
        mutations.push(json!({"patchType": "JSONPatch", "jsonPatch": {"expression": add}}));
    }
    json!({
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": within(slice, &[rule("", &["pods"], &["CREATE"])]),
        "variables": variables,
        "mutations": mutations,
    })
}

/// What happens in the namespaces of one virtual cluster, and to those.
fn within(slice: &Slice, rules: &[Value]) -> Value {
    json!({
        "matchPolicy": "Equivalent", "objectSelector": {},
        "namespaceSelector": {"matchLabels": {CLUSTER_LABEL: slice.cluster.as_str()}},
        "resourceRules": rules,
    })
}

/// The guard's node selector as a map of CEL. It is never empty: the configuration refuses that.
fn selector(guard: &Guard) -> String {
    let members: Vec<_> =
        guard.selector().map(|(key, value)| format!("{}: {}", literal(key), literal(value))).collect();
    format!("{{{}}}", members.join(", "))
}

/// A toleration as a map of CEL, with the fields that it has.
fn toleration(toleration: &rewrite::guard::Toleration) -> String {
    let texts = [
        ("key", &toleration.key),
        ("operator", &toleration.operator),
        ("value", &toleration.value),
        ("effect", &toleration.effect),
    ];
    let mut members: Vec<_> = texts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| format!("'{name}': dyn({})", literal(text)))
        .collect();
    if let Some(seconds) = toleration.seconds {
        members.push(format!("'tolerationSeconds': dyn({seconds})"));
    }
    format!("{{{}}}", members.join(", "))
}
