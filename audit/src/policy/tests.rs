use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn parse(rules: &str) -> Result<Policy, String> {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}");
    Policy::parse(text.as_bytes(), Path::new("policy.yaml")).map_err(|errors| errors.to_string())
}

#[test]
fn mistakes_are_reported_with_their_line() {
    for (rules, why) in [
        ("- {level: Request}", "level Request is not supported"),
        ("- {level: RequestResponse}", "streams"),
        ("- {level: metadata}", "is not one of"),
        ("- {verbs: [get]}", "`level` is missing"),
        ("- {level: None, user: jane}", "`user`"),
        ("- {level: None, nonResourceURLs: [metrics]}", "must begin with `/`"),
        ("- {level: None, nonResourceURLs: [\"/a*b\"]}", "must be the last character"),
        ("- {level: None, nonResourceURLs: [/a], namespaces: [x]}", "both nonResourceURLs and resources"),
        ("- {level: None, resources: [{group: \"a/v1\"}]}", "not the name of an API group"),
        ("- {level: None, resources: [{resourceNames: [a]}]}", "need `resources`"),
        ("- {level: None, omitStages: [Never]}", "is not one of"),
    ] {
        let error = parse(rules).unwrap_err();
        assert!(error.contains(why) && error.contains(":4:"), "{rules}: {error}");
    }
    assert!(parse("  []").unwrap_err().contains("no rules"));
    let ours = "apiVersion: atoll.dev/v1alpha1\nkind: Policy\nrules: [{level: None}]";
    assert!(Policy::parse(ours.as_bytes(), Path::new("p")).unwrap_err().to_string().contains("audit.k8s.io/v1"));
}

/// The example of Kubernetes' documentation uses most keys.
#[test]
fn a_usual_policy_is_accepted() {
    let policy = parse(
        "- {level: None, users: [\"system:kube-proxy\"], verbs: [watch], resources: [{group: \"\", resources: [endpoints]}]}\n\
         - {level: None, userGroups: [\"system:authenticated\"], nonResourceURLs: [\"/api*\", /version], omitManagedFields: true}\n\
         - {level: Metadata, omitStages: [RequestReceived]}\nomitManagedFields: true\nmetadata: {name: example}\n",
    )
    .unwrap();
    let groups = ["system:authenticated".to_owned()];
    let at = |path| decide(&policy, &Attributes { user: "jane", groups: &groups, verb: "get", path, object: None });
    assert_eq!(at("/apis/apps").level, Level::None);
    assert!(at("/healthz").records(Stage::ResponseComplete) && !at("/healthz").records(Stage::RequestReceived));
}

#[test]
fn the_default_records_metadata_of_everything() {
    let policy = Policy::metadata();
    let object = Some(Object { resource: "pods", ..Object::default() });
    for object in [None, object] {
        let decision = decide(&policy, &Attributes { user: "", groups: &[], verb: "get", path: "/", object });
        assert_eq!(decision.level, Level::Metadata);
        assert_eq!(
            [Stage::RequestReceived, Stage::ResponseStarted, Stage::ResponseComplete].map(|s| decision.records(s)),
            [false, true, true]
        );
    }
}

/// The rules in words, over the JSON of a policy: how `ruleMatches` of kube-apiserver decides.
fn expected(policy: &Value, attributes: &Attributes<'_>) -> (String, Vec<String>) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let texts = |value: &Value| list(value).iter().map(|text| text.as_str().unwrap().to_owned()).collect::<Vec<_>>();
    for rule in list(&policy["rules"]) {
        let allows = |key: &str, has: &dyn Fn(&String) -> bool| {
            let wanted = texts(&rule[key]);
            wanted.is_empty() || wanted.iter().any(has)
        };
        let mut matches = allows("users", &|user| user == attributes.user)
            && allows("userGroups", &|group| attributes.groups.contains(group))
            && allows("verbs", &|verb| verb == attributes.verb);
        let (resources, urls) = (list(&rule["resources"]), texts(&rule["nonResourceURLs"]));
        if !resources.is_empty() || !texts(&rule["namespaces"]).is_empty() {
            matches &= attributes.object.is_some_and(|object| {
                let whole = match object.subresource {
                    "" => object.resource.to_owned(),
                    subresource => format!("{}/{subresource}", object.resource),
                };
                let is_resource = |pattern: &String| {
                    *pattern == whole
                        || pattern == "*"
                        || !object.subresource.is_empty() && *pattern == format!("*/{}", object.subresource)
                        || *pattern == format!("{}/*", object.resource)
                };
                let in_group = |of: &Value| {
                    let (group, names) = (of["group"].as_str().unwrap(), texts(&of["resourceNames"]));
                    let patterns = texts(&of["resources"]);
                    (group == "*" || group == object.group)
                        && (patterns.is_empty()
                            || patterns.iter().any(is_resource)
                                && (names.is_empty() || names.iter().any(|name| name == object.name)))
                };
                allows("namespaces", &|namespace| namespace == object.namespace)
                    && (resources.is_empty() || resources.iter().any(in_group))
            });
        } else if !urls.is_empty() {
            let is_path = |url: &String| {
                *url == attributes.path || url.ends_with('*') && attributes.path.starts_with(url.trim_end_matches('*'))
            };
            matches &= attributes.object.is_none() && urls.iter().any(is_path);
        }
        if matches {
            let omitted = texts(&policy["omitStages"]).into_iter().chain(texts(&rule["omitStages"])).collect();
            return (rule["level"].as_str().unwrap().to_owned(), omitted);
        }
    }
    ("None".to_owned(), Vec::new())
}

fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(of), 0..3)
}

fn rule() -> impl Strategy<Value = Value> {
    let of_group = (
        proptest::sample::select(&["", "apps", "*"][..]),
        some(&["pods", "pods/log", "pods/*", "*/scale", "*", "deployments", "*/*"]),
        some(&["a", "b"]),
    );
    let of_group = of_group.prop_map(|(group, resources, names)| {
        let names = if resources.is_empty() { Vec::new() } else { names };
        json!({"group": group, "resources": resources, "resourceNames": names})
    });
    let level = proptest::sample::select(&["None", "Metadata"][..]);
    let users = (level, some(&["jane", "joe"]), some(&["g1", "g2"]), some(&["get", "list"]));
    let what = (proptest::collection::vec(of_group, 0..3), some(&["", "n1"]), some(&["/api*", "/version", "*"]));
    let stages = some(&["RequestReceived", "ResponseStarted", "ResponseComplete"]);
    (users, what, stages, any::<bool>()).prop_map(|((level, users, groups, verbs), what, stages, is_path)| {
        let (resources, namespaces, urls) = what;
        let (resources, namespaces) = if is_path { (Vec::new(), Vec::new()) } else { (resources, namespaces) };
        let urls = if is_path { urls } else { Vec::new() };
        json!({"level": level, "users": users, "userGroups": groups, "verbs": verbs, "resources": resources,
               "namespaces": namespaces, "nonResourceURLs": urls, "omitStages": stages})
    })
}

proptest! {
    #[test]
    fn the_first_rule_that_matches_decides(
        rules in proptest::collection::vec(rule(), 1..5),
        omitted in some(&["RequestReceived", "ResponseComplete"]),
        user in proptest::sample::select(&["jane", "joe", ""][..]),
        groups in some(&["g1", "g2", "g3"]),
        verb in proptest::sample::select(&["get", "list", "watch"][..]),
        path in proptest::sample::select(&["/api", "/apis/apps", "/version", "/healthz"][..]),
        object in proptest::option::of((
            proptest::sample::select(&["", "apps", "batch"][..]),
            proptest::sample::select(&["pods", "deployments"][..]),
            proptest::sample::select(&["", "log", "scale"][..]),
            proptest::sample::select(&["", "n1", "n2"][..]),
            proptest::sample::select(&["", "a", "c"][..]),
        )),
    ) {
        let json = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": omitted, "rules": rules});
        let policy = Policy::parse(json.to_string().as_bytes(), Path::new("policy.yaml")).unwrap();
        let groups: Vec<_> = groups.iter().map(|&group| group.to_owned()).collect();
        let object = object.map(|(group, resource, subresource, namespace, name)| {
            Object { group, resource, subresource, namespace, name }
        });
        let attributes = Attributes { user, groups: &groups, verb, path, object };
        let (decision, (level, omitted)) = (decide(&policy, &attributes), expected(&json, &attributes));
        prop_assert_eq!(format!("{:?}", decision.level), level.as_str());
        for stage in [Stage::RequestReceived, Stage::ResponseStarted, Stage::ResponseComplete] {
            let is_expected = level != "None" && !omitted.contains(&format!("{stage:?}"));
            prop_assert_eq!(decision.records(stage), is_expected);
        }
    }
}
