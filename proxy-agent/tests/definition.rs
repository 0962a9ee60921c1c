//! `configs/kubernetes/virtual-clusters.yaml` has the keys of the configuration file, and the names that the agent uses.

use std::collections::BTreeSet;

use serde_json::Value;
use virtual_cluster::declared::{self, DeletionPolicy, sets, spec};

/// Another test proves that it has all keys of the configuration.
const EXAMPLE: &str = include_str!("../../configs/proxy-agent.yaml");
const DEFINITION: &str = include_str!("../../configs/kubernetes/virtual-clusters.yaml");

/// The keys of `spec` that the file does not have.
const MORE: &str = "deletionPolicy";

fn parse(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).expect("YAML")
}

/// The definitions of the two kinds.
fn definitions() -> [Value; 2] {
    let (cluster, set) = DEFINITION.split_once("\n---\n").expect("two documents");
    [parse(cluster), parse(set)]
}

fn schema() -> Value {
    schema_of(&definitions()[0])
}

fn schema_of(definition: &Value) -> Value {
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clone()
}

/// The paths of the keys that only one side has.
fn differences(schema: &Value, example: &Value, path: &str) -> Vec<String> {
    let (Some(properties), Some(example)) = (schema["properties"].as_object(), example.as_object()) else {
        return Vec::new();
    };
    let (ours, theirs): (BTreeSet<_>, BTreeSet<_>) = (properties.keys().collect(), example.keys().collect());
    let mut differences: Vec<_> = ours.symmetric_difference(&theirs).map(|key| format!("{path}.{key}")).collect();
    for (key, schema) in properties {
        let below = example.get(key).unwrap_or(&Value::Null);
        differences.extend(self::differences(schema, below, &format!("{path}.{key}")));
    }
    differences
}

#[test]
fn the_specification_has_the_keys_of_the_configuration_file() {
    let mut entry = parse(EXAMPLE)["virtualClusters"][0].take();
    let entry = entry.as_object_mut().unwrap();
    entry.remove("name");
    entry.extend([MORE, "kubeconfig"].map(|key| (key.to_owned(), Value::Null)));
    let schema = &schema()["spec"];
    assert_eq!(differences(schema, &Value::Object(entry.clone()), "spec"), Vec::<String>::new());
    assert!(entry.len() > 5, "the example has too few keys for this test");
    let keys: BTreeSet<_> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, spec::KEYS.into());
    assert_eq!(schema["properties"][MORE]["default"], format!("{:?}", DeletionPolicy::default()));
}

#[test]
fn the_kind_is_the_one_that_the_agent_follows() {
    let [definition, set] = definitions();
    assert_eq!(set["spec"]["names"]["kind"], sets::KIND);
    assert!(sets::PATH.ends_with(&format!("/{}", set["spec"]["names"]["plural"].as_str().unwrap())));
    let (group, names) = (&definition["spec"]["group"], &definition["spec"]["names"]);
    let version = &definition["spec"]["versions"][0]["name"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let api_version = format!("{}/{}", text(group), text(version));
    assert_eq!(api_version, declared::API_VERSION);
    assert_eq!(format!("/apis/{api_version}/{}", text(&names["plural"])), declared::PATH);
    assert_eq!(names["kind"], declared::KIND);
}

#[test]
fn the_status_has_the_keys_that_the_agent_writes() {
    let moment = ops::date::Moment::now();
    let condition = declared::Condition {
        kind: "Ready".to_owned(),
        status: "True".to_owned(),
        reason: "Serving".to_owned(),
        message: String::new(),
        last_transition_time: moment,
        observed_generation: 1,
    };
    let last_error = Some(declared::LastError { time: moment, code: 500, message: String::new() });
    let secret = declared::SecretReference { namespace: String::new(), name: String::new() };
    let status = declared::Status {
        endpoint: Some(String::new()),
        kubeconfig_secret: Some(secret),
        last_error,
        conditions: vec![condition],
        ..declared::Status::default()
    };
    let status = serde_json::to_value(status).unwrap();
    let schema = &schema()["status"];
    assert_eq!(differences(schema, &status, "status"), Vec::<String>::new());
    let conditions = &schema["properties"]["conditions"]["items"];
    assert_eq!(differences(conditions, &status["conditions"][0], "conditions"), Vec::<String>::new());
}

#[test]
fn the_template_of_a_set_has_the_schema_of_a_cluster() {
    let set = schema_of(&definitions()[1]);
    assert_eq!(
        set["spec"]["properties"]["template"]["properties"]["spec"]["properties"],
        schema()["spec"]["properties"]
    );
}
