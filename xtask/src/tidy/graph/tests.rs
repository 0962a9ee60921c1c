use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

/// A workspace in a few words: `("rewrite", "kube-wire, dev:proptest@1.0.0")`. Names without a version are members.
pub(in crate::tidy) fn workspace(crates: &[(&str, &str)]) -> Graph {
    let mut packages = BTreeMap::new();
    let mut nodes = Vec::new();
    let mut add = |id: &str| {
        let (name, version) = id.split_once('@').unwrap_or((id, "0.1.0"));
        let is_member = name == id;
        packages.entry(id.to_owned()).or_insert_with(|| {
            json!({
                "id": id, "name": name, "version": version, "features": {}, "dependencies": [],
                "license": if is_member { "Apache-2.0" } else { "MIT" },
                "source": if is_member { Value::Null } else { CRATES_IO.into() },
                "manifest_path": format!("/ws/{name}/Cargo.toml"),
            })
        });
        name.to_owned()
    };
    let mut declared = Vec::new();
    for (id, dependencies) in crates {
        add(id);
        let mut deps = Vec::new();
        for dependency in dependencies.split(", ").filter(|text| !text.is_empty()) {
            let (kind, to) = dependency.split_once(':').map_or((Value::Null, dependency), |(k, to)| (k.into(), to));
            let name = add(to);
            declared.push((id.to_owned(), json!({ "name": name, "kind": kind, "optional": false, "req": "^1" })));
            deps.push(json!({ "pkg": to, "dep_kinds": [{ "kind": kind }] }));
        }
        nodes.push(json!({ "id": id, "deps": deps, "features": [] }));
    }
    let members: Vec<String> = packages.keys().filter(|id| !id.contains('@')).cloned().collect();
    for (id, dependency) in declared {
        packages.get_mut(id).unwrap()["dependencies"].as_array_mut().unwrap().push(dependency);
    }
    let packages: Vec<Value> = packages.into_values().collect();
    let metadata = json!({
        "packages": packages, "workspace_members": members, "workspace_root": "/ws", "resolve": { "nodes": nodes },
    });
    Graph::read(metadata.to_string().as_bytes()).unwrap()
}

pub(in crate::tidy) const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn index(graph: &Graph, name: &str) -> PackageIndex {
    PackageIndex(graph.packages.iter().position(|package| package.name == name).unwrap())
}

fn reached(graph: &Graph) -> Vec<String> {
    graph.reached().iter().map(|one| arrows(&one.chain)).collect()
}

#[test]
fn a_chain_is_a_shortest_one_and_of_normal_dependencies() {
    let graph = workspace(&[("a", "b, dev:tokio@1.0.0"), ("b", "c@1.0.0"), ("c@1.0.0", "d@1.0.0"), ("d@1.0.0", "")]);
    let a = index(&graph, "a");
    assert_eq!(graph.chain(a, |p| p.name == "d").as_deref().map(arrows).as_deref(), Some("a -> b -> c -> d"));
    assert!(graph.chain(a, |p| p.name == "tokio").is_none());
    assert!(graph.chain(a, |p| p.name == "a").is_none());
}

#[test]
fn the_tests_of_a_dependency_are_not_built() {
    let graph = workspace(&[("a", "dev:b@1.0.0"), ("b@1.0.0", "build:c@1.0.0, dev:d@1.0.0"), ("c@1.0.0", "")]);
    assert_eq!(reached(&graph), ["a", "a -> b", "a -> b -> c"]);
}

/// rustls-webpki in short: `ring` is in `resolve` though only a weak feature names it.
#[test]
fn an_optional_crate_that_is_off_is_no_dependency() {
    for (feature, ring) in [("alloc", false), ("ring", true), ("ring-alloc", true), ("backup", true)] {
        let metadata = json!({
            "packages": [
                { "id": "webpki", "name": "webpki", "version": "0.103.0", "manifest_path": "/ws/Cargo.toml",
                  "features": { "alloc": ["ring?/alloc"], "ring": ["dep:ring"], "ring-alloc": ["ring/alloc"], "backup": ["dep:old"] },
                  "dependencies": [
                    { "name": "ring", "optional": true, "req": "^0.17" },
                    { "name": "ring", "rename": "old", "optional": true, "req": "^0.16" },
                  ] },
                { "id": "ring", "name": "ring", "version": "0.17.14", "manifest_path": "/r/Cargo.toml",
                  "features": { "alloc": [] }, "dependencies": [] },
            ],
            "workspace_members": ["webpki"],
            "workspace_root": "/ws",
            "resolve": { "nodes": [
                { "id": "webpki", "features": [feature], "deps": [{ "pkg": "ring", "dep_kinds": [{ "kind": null }] }] },
                { "id": "ring", "features": ["alloc"], "deps": [] },
            ] },
        });
        let graph = Graph::read(metadata.to_string().as_bytes()).unwrap();
        assert_eq!(reached(&graph).len() == 2, ring, "{feature}");
    }
}

#[test]
fn a_package_that_is_not_listed_is_an_error() {
    let metadata =
        json!({ "packages": [], "workspace_members": ["a"], "workspace_root": "/", "resolve": { "nodes": [] } });
    assert!(Graph::read(metadata.to_string().as_bytes()).unwrap_err().to_string().contains("lacks the package a"));
}

/// Cargo itself is the oracle: what `cargo tree` prints for this workspace is what is reached.
#[test]
fn this_workspace_is_reached_as_cargo_tree_reaches_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let target = "x86_64-unknown-linux-gnu";
    let graph = Graph::load(root, &[target.to_owned()]).unwrap();
    let ours: BTreeSet<String> =
        graph.reached().iter().map(|one| format!("{} v{}", one.package.name, one.package.version)).collect();
    let output = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["tree", "--workspace", "--locked", "--edges=normal,build,dev", "--prefix=none", "--target", target])
        .args(["--format={p}"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cargo: BTreeSet<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(ours, cargo);
}
