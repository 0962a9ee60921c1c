//! The software bill of materials of the programs for one architecture, in CycloneDX 1.5
//! (<https://cyclonedx.org/docs/1.5/json/>).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::arch::Arch;
use super::component::Component;
use super::release::{PROGRAMS, Release};

/// The reference of the whole release within the document.
const RELEASE: &str = "atoll-release";

/// The document. `programs` has the checksum of each program.
pub(crate) fn document(
    release: &Release,
    arch: Arch,
    components: &[Component],
    programs: &BTreeMap<&str, String>,
) -> anyhow::Result<Value> {
    let mut dependencies = vec![json!({
        "ref": RELEASE,
        "dependsOn": sorted(components.iter().filter(|component| is_program(component)).map(reference)),
    })];
    dependencies.extend(components.iter().map(|component| {
        let uses = component.uses.iter().map(|&place| reference(&components[place]));
        json!({"ref": reference(component), "dependsOn": sorted(uses)})
    }));
    let list: Vec<Value> = components.iter().map(|component| entry(component, programs)).collect();
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial_number(programs),
        "version": 1,
        "metadata": {
            "timestamp": release.timestamp()?,
            "tools": {"components": [
                {"type": "application", "name": "xtask dist", "version": env!("CARGO_PKG_VERSION")},
            ]},
            "component": {
                "type": "application",
                "bom-ref": RELEASE,
                "name": "atoll",
                "version": release.version.to_string(),
                "licenses": [{"expression": "Apache-2.0"}],
                "properties": [{"name": "atoll:target", "value": arch.triple()}],
            },
        },
        "components": list,
        "dependencies": dependencies,
    }))
}

/// A UUID that is equal for equal programs, and for no others (version 8 of RFC 9562).
fn serial_number(programs: &BTreeMap<&str, String>) -> String {
    let sum = programs.get("atoll").map(String::as_str).unwrap_or_default();
    let digits = |from: usize, to: usize| sum.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-8{}-8{}-{}", digits(0, 8), digits(8, 12), digits(12, 15), digits(15, 18), digits(18, 30))
}

fn entry(component: &Component, programs: &BTreeMap<&str, String>) -> Value {
    let is_program = is_program(component);
    let mut entry = Map::new();
    entry.insert("type".into(), if is_program { "application" } else { "library" }.into());
    entry.insert("bom-ref".into(), reference(component).into());
    entry.insert("name".into(), component.name.as_str().into());
    entry.insert("version".into(), component.version.as_str().into());
    // Of a program, the checksum is that of the file, and not that of the source.
    let sum = if is_program { programs.get(component.name.as_str()) } else { component.checksum.as_ref() };
    if let Some(sum) = sum {
        entry.insert("hashes".into(), json!([{"alg": "SHA-256", "content": sum}]));
    }
    if let Some(license) = &component.license {
        entry.insert("licenses".into(), json!([{"expression": license}]));
    }
    if let Some(purl) = &component.purl {
        entry.insert("purl".into(), purl.as_str().into());
    }
    entry.into()
}

fn is_program(component: &Component) -> bool {
    component.is_ours() && PROGRAMS.contains(&component.name.as_str())
}

fn reference(component: &Component) -> String {
    component.purl.clone().unwrap_or_else(|| format!("{}@{}", component.name, component.version))
}

fn sorted(references: impl Iterator<Item = String>) -> Vec<String> {
    let mut references: Vec<_> = references.collect();
    references.sort_unstable();
    references
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::version::Version;
    use super::*;

    fn component(name: &str, purl: Option<&str>, uses: &[usize]) -> Component {
        Component {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT".to_owned()),
            purl: purl.map(str::to_owned),
            checksum: purl.map(|_| "cd".to_owned()),
            folder: None,
            uses: uses.iter().copied().collect(),
        }
    }

    #[test]
    fn the_document_says_what_is_linked_into_which_program() {
        let release = Release {
            root: PathBuf::new(),
            version: Version::default(),
            archs: vec![Arch::Aarch64],
            epoch: 1_700_000_000,
        };
        let http = "pkg:cargo/http@1.0.0";
        let components =
            [component("atoll", None, &[1, 2]), component("ops", None, &[2]), component("http", Some(http), &[])];
        let document = document(&release, Arch::Aarch64, &components, &[("atoll", "ab".repeat(32))].into()).unwrap();
        assert_eq!(document["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        assert_eq!(document["serialNumber"], "urn:uuid:abababab-abab-8aba-8bab-abababababab");
        assert_eq!(document["metadata"]["component"]["properties"][0]["value"], "aarch64-unknown-linux-gnu");
        let [program, ours, theirs] = document["components"].as_array().unwrap().as_slice() else { panic!() };
        assert_eq!([&program["type"], &program["hashes"][0]["content"]], ["application", &"ab".repeat(32)]);
        assert_eq!([&ours["type"], &ours["bom-ref"]], ["library", "ops@1.0.0"]);
        assert!(ours.get("purl").is_none() && ours.get("hashes").is_none(), "{ours}");
        assert_eq!([&theirs["purl"], &theirs["bom-ref"], &theirs["hashes"][0]["content"]], [http, http, "cd"]);
        assert_eq!(
            document["dependencies"],
            json!([
                {"ref": RELEASE, "dependsOn": ["atoll@1.0.0"]},
                {"ref": "atoll@1.0.0", "dependsOn": ["ops@1.0.0", http]},
                {"ref": "ops@1.0.0", "dependsOn": [http]},
                {"ref": http, "dependsOn": []},
            ])
        );
    }
}
