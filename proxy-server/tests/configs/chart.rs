//! Compares the schema of the Helm chart with a configuration type: both must have the same keys, because the chart refuses
//! all others.

use std::collections::BTreeSet;

use ops::config::Document;
use serde_json::Value;

use super::keys;

const SCHEMA: &str = include_str!("../../../configs/helm/atoll/values.schema.json");

/// Keys that only the type or only the schema has, as lines for people. `definition` is the name of the schema's part.
pub(crate) fn differences<T: Document>(example: &str, definition: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let of_chart = |path: &str| {
        let mut part = &schema["definitions"][definition];
        for key in path.split('.').filter(|key| !key.is_empty()) {
            part = mapping(&schema, &mapping(&schema, part)?["properties"][key])?;
        }
        mapping(&schema, part)
    };
    let mut differences = Vec::new();
    for (path, known) in keys::known::<T>(example) {
        let Some(part) = of_chart(&path) else {
            differences.push(format!("values.schema.json does not describe {path}"));
            continue;
        };
        let described: BTreeSet<String> = part["properties"].as_object().expect("a mapping").keys().cloned().collect();
        if part["additionalProperties"] != false {
            differences.push(format!("values.schema.json accepts all keys of {path}"));
        }
        // The schema also has the keys of every document.
        let is_header = |key: &&String| path.is_empty() && ["apiVersion", "kind"].contains(&key.as_str());
        for key in known.symmetric_difference(&described).filter(|key| !is_header(key)) {
            let by = if known.contains(key) { "is missing in" } else { "is only in" };
            differences.push(format!("{} {by} values.schema.json", keys::join(&path, key)));
        }
    }
    differences
}

/// The part of the schema that describes a mapping, or the mappings of a list.
fn mapping<'a>(schema: &'a Value, part: &'a Value) -> Option<&'a Value> {
    if part["properties"].is_object() {
        return Some(part);
    }
    if let Some(reference) = part["$ref"].as_str() {
        return mapping(schema, schema.pointer(reference.trim_start_matches('#'))?);
    }
    let alternatives = part["anyOf"].as_array().into_iter().flatten();
    alternatives.chain(part.get("items")).find_map(|part| mapping(schema, part))
}
