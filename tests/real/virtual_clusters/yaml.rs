//! YAML: a virtual cluster parses it like the API server, or refuses it.

use anyhow::{Context, ensure};
use atoll_tests::{Curl, Route, VirtualSite};
use serde_json::Value;

use super::{BEIJING, namespace};

const YAML: &str = "application/yaml";
const APPLY: &str = "application/apply-patch+yaml";
const HERE: &str = "yaml";

/// Values of a field of any type. The host accepts all of them.
const VALUES: [&str; 58] = [
    "0400",
    "0o400",
    "0x1F",
    "0b11",
    "-0b11",
    "0b-1",
    "-0400",
    "08",
    "09.5",
    "1_000",
    "_1",
    "1__0",
    "+7",
    "-0",
    "1:30",
    "1:30:15.5",
    "1e3",
    "1E3",
    ".5",
    "-.5",
    "1.",
    "1.50",
    "1e999",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    "0.1",
    "1e21",
    "1e-7",
    "yes",
    "No",
    "ON",
    "off",
    "y",
    "N",
    "yES",
    "true",
    "False",
    "~",
    "null",
    "Null",
    "",
    "2001-01-01",
    "2001-01-01T00:00:00Z",
    "=",
    "\"0400\"",
    "'yes'",
    "!!str 0400",
    "!!int \"0400\"",
    "!!float 1",
    "!foo 12",
    "\"\\x41\\u00e9\\n\"",
    "[a, 0400, {on: off}]",
    "{0400: a, yes: b}",
    "|\n    a\n    b\n",
    ">-\n    a\n    b\n",
];

/// Documents with duplicate keys, or with aliases.
const DOCUMENTS: [&str; 9] = [
    "x: 1\nx: 2",
    "x: {a: 1, a: 2}",
    "base: &base {a: 1, b: 2}\nx: {<<: *base, a: 3}",
    "base: &base {a: 1, b: 2}\nx: {a: 3, <<: *base}",
    "x: {<<: [{a: 1}, {a: 2, b: 2}]}",
    "base: &base {a: 1}\nx: [*base, *base]",
    "base: &base {<<: {a: 1}, b: 2}\nx: {<<: *base}",
    "x: {\"<<\": 1}",
    "x: {<<: {a: 1}, <<: {b: 2}}",
];

/// Documents that neither side accepts.
const REFUSED: [&str; 12] = [
    "x: .inf",
    "x: .NaN",
    "x: !!int a",
    "x: !!bool 1",
    "x: {~: 1}",
    "x: {[a]: 1}",
    "x: {<<: 1}",
    "x: *none",
    "x: [",
    "x: &a [*a]",
    "x: \t1\n\t- a",
    "x: \"\\q\"",
];

/// Ambiguous documents, which only a virtual cluster refuses.
const AMBIGUOUS: [&str; 6] = [
    "x: !!binary aGk=",
    "x: !!timestamp 2001-01-01",
    "x: {1.5: a}",
    "x: {1: a, \"1\": b}",
    "x: a\u{85}b",
    "x: \"a\u{2028}b\"",
];

/// The two sides.
struct Sides {
    host: Curl,
    cluster: Curl,
}

pub(super) fn is_read_as_by_the_host(site: &VirtualSite) -> anyhow::Result<()> {
    let names = serde_json::json!({"plural": "readables", "singular": "readable", "kind": "Readable"});
    let schema = serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        serde_json::json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let definition = serde_json::json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "readables.yaml.example.com"},
        "spec": {"group": "yaml.example.com", "scope": "Namespaced", "names": names, "versions": [version]}});
    let kubectl = site.administrator(BEIJING, Route::Proxy)?;
    kubectl.ok_with(&["create", "-f", "-"], &definition.to_string())?;
    kubectl.ok(&["wait", "--for=condition=Established", "crd/readables.yaml.example.com", "--timeout=30s"])?;
    for kubectl in [site.host().kubectl(), kubectl] {
        kubectl.ok_with(&["create", "-f", "-"], &namespace(HERE))?;
    }
    let pki = site.host().dir().join("pki");
    let address = site.host().api_servers()?.into_iter().next().context("no API server")?;
    let host = Curl::directly(&address, &pki.join("ca.crt"));
    let host = host.with_certificate(&pki.join("admin.crt"), &pki.join("admin.key"));
    let sides = Sides { host, cluster: site.curl(BEIJING, Route::Path)? };

    let mut differences = Vec::new();
    let values = VALUES.iter().map(|value| format!("x: {value}"));
    let written = values.chain(DOCUMENTS.iter().map(|document| (*document).to_owned()));
    for (number, document) in written.enumerate() {
        differences.extend(sides.differ(number, &document, true)?);
    }
    for (number, document) in REFUSED.iter().enumerate() {
        differences.extend(sides.differ(1000 + number, document, false)?);
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
    for document in AMBIGUOUS {
        let response = sides.cluster.send_as("POST", COLLECTION, YAML, &object("ambiguous", document))?;
        response.refused(400, "BadRequest", "is not supported in a virtual cluster")?;
    }
    strictness_is_the_clients(&sides)?;

    let host = site.host().kubectl();
    let config_map = "apiVersion: v1\nkind: Pod\nmetadata: {name: modes}\nspec:\n  containers: [{name: a, image: a}]\n  \
                      volumes: [{name: a, configMap: {name: a, optional: yes, defaultMode: 0400}}]\n";
    let made = sides.cluster.send_as("POST", "/api/v1/namespaces/yaml/pods", YAML, config_map)?;
    ensure!(made.code == 201, "{}", made.body);
    let mode = host.ok(&[
        "get",
        "pod",
        "modes",
        "-n",
        "yaml-ke-beijing",
        "-o",
        "jsonpath={.spec.volumes[0].configMap.defaultMode}",
    ])?;
    ensure!(mode == "256", "{mode}");
    for kubectl in [host, site.administrator(BEIJING, Route::Proxy)?] {
        kubectl.ok(&["delete", "namespace", HERE, "--timeout=60s"])?;
    }
    site.administrator(BEIJING, Route::Proxy)?.ok(&["delete", "crd", "readables.yaml.example.com", "--timeout=60s"])?;
    Ok(())
}

const COLLECTION: &str = "/apis/yaml.example.com/v1/namespaces/yaml/readables";

/// Duplicate keys cause an error, a warning, or neither.
fn strictness_is_the_clients(sides: &Sides) -> anyhow::Result<()> {
    let twice = object("twice", "x: 1\nx: 2");
    for side in [&sides.host, &sides.cluster] {
        for (validation, code) in [("Strict", 400), ("Warn", 201), ("Ignore", 201)] {
            let side = side.clone().with(&["--include"]);
            let path = format!("{COLLECTION}?dryRun=All&fieldValidation={validation}");
            let response = side.send_as("POST", &path, YAML, &twice)?;
            ensure!(response.code == code, "{validation}: {}", response.body);
            let warns = response.body.to_lowercase().contains("\nwarning: ");
            ensure!(warns == (validation == "Warn"), "{validation}: {}", response.body);
            // JSON and the header escape the quotes.
            ensure!(
                validation == "Ignore" || response.body.contains(r#"line 5: key \"x\" already set in map"#),
                "{validation}: {}",
                response.body
            );
        }
    }
    Ok(())
}

// === impl Sides ===

impl Sides {
    /// The differences of the two sides for one document, with create and apply.
    fn differ(&self, number: usize, document: &str, is_taken: bool) -> anyhow::Result<Vec<String>> {
        let mut differences = Vec::new();
        for (method, path, media) in [
            ("POST", format!("{COLLECTION}?fieldValidation=Ignore"), YAML),
            ("PATCH", format!("{COLLECTION}/applied-{number}?fieldManager=a&fieldValidation=Ignore"), APPLY),
        ] {
            let name = if method == "POST" { format!("created-{number}") } else { format!("applied-{number}") };
            let body = object(&name, document);
            let (host, cluster) =
                (self.host.send_as(method, &path, media, &body)?, self.cluster.send_as(method, &path, media, &body)?);
            let output = |body: &str| -> Value {
                let output: Value = serde_json::from_str(body).unwrap_or_default();
                if output["kind"] == "Status" {
                    output["reason"].clone()
                } else {
                    serde_json::json!([output["base"], output["x"]])
                }
            };
            let alike = host.code == cluster.code && output(&host.body) == output(&cluster.body);
            if !alike || (host.code < 300) != is_taken {
                differences.push(format!(
                    "{method} {document}\n- {} {}\n+ {} {}",
                    host.code, host.body, cluster.code, cluster.body
                ));
            }
        }
        Ok(differences)
    }
}

fn object(name: &str, document: &str) -> String {
    format!("apiVersion: yaml.example.com/v1\nkind: Readable\nmetadata: {{name: {name}}}\n{document}\n")
}
