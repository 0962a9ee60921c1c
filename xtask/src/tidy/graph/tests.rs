use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

/// A workspace in short form: `("rewrite", "kube-wire, dev:proptest@1.0.0")`. Names without a version are members.
pub(in crate::tidy) fn workspace(crates: &[(&str, &str)]) -> Graph {
    let mut packages = BTreeMap::new();
    let mut nodes = Vec::new();
    let mut add = |id: &str| {
        let name = id.split('@').next().unwrap_or(id);
        packages.entry(id.to_owned()).or_insert_with(|| {
            json!({
                "id": id, "name": name, "features": {}, "dependencies": [],
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
            declared.push((id.to_owned(), json!({ "name": name, "kind": kind, "optional": false })));
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

fn index(graph: &Graph, name: &str) -> PackageIndex {
    PackageIndex(graph.packages.iter().position(|package| package.name == name).unwrap())
}

/// The names of all packages that are needed to build and test the members. The tests of a dependency are not built.
fn reached(graph: &Graph) -> BTreeSet<&str> {
    let mut reached: BTreeSet<_> = graph.members.iter().copied().collect();
    let mut open = graph.members.clone();
    while let Some(from) = open.pop() {
        for edge in &graph.package(from).edges {
            let is_built = graph.members.contains(&from) || edge.uses.iter().any(|&used| used != Use::Dev);
            if is_built && reached.insert(edge.to) {
                open.push(edge.to);
            }
        }
    }
    reached.into_iter().map(|index| graph.package(index).name.as_str()).collect()
}

#[test]
fn a_chain_is_a_shortest_one_and_of_normal_dependencies() {
    let graph = workspace(&[("a", "b, dev:tokio@1.0.0"), ("b", "c@1.0.0"), ("c@1.0.0", "d@1.0.0"), ("d@1.0.0", "")]);
    let a = index(&graph, "a");
    assert_eq!(graph.chain(a, |p| p.name == "d").as_deref().map(arrows).as_deref(), Some("a -> b -> c -> d"));
    assert!(graph.chain(a, |p| p.name == "tokio").is_none());
    assert!(graph.chain(a, |p| p.name == "a").is_none());
}

/// rustls-webpki in short: `ring` is in `resolve` though only a weak feature names it.
#[test]
fn an_optional_crate_that_is_off_is_no_dependency() {
    for (feature, ring) in [("alloc", false), ("ring", true), ("ring-alloc", true), ("backup", true)] {
        let metadata = json!({
            "packages": [
                { "id": "webpki", "name": "webpki", "manifest_path": "/ws/Cargo.toml",
                  "features": { "alloc": ["ring?/alloc"], "ring": ["dep:ring"], "ring-alloc": ["ring/alloc"], "backup": ["dep:old"] },
                  "dependencies": [
                    { "name": "ring", "optional": true },
                    { "name": "ring", "rename": "old", "optional": true },
                  ] },
                { "id": "ring", "name": "ring", "manifest_path": "/r/Cargo.toml",
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
        assert_eq!(reached(&graph).contains("ring"), ring, "{feature}");
    }
}

#[test]
fn a_package_that_is_not_listed_is_an_error() {
    let metadata =
        json!({ "packages": [], "workspace_members": ["a"], "workspace_root": "/", "resolve": { "nodes": [] } });
    assert!(Graph::read(metadata.to_string().as_bytes()).unwrap_err().to_string().contains("lacks the package a"));
}

/// Cargo itself is the oracle: the graph reaches what `cargo tree` prints for this workspace.
#[test]
fn this_workspace_is_reached_as_cargo_tree_reaches_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let target = "x86_64-unknown-linux-gnu";
    let graph = Graph::load(root, &[target]).unwrap();
    let output = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["tree", "--workspace", "--locked", "--edges=normal,build,dev", "--prefix=none", "--target", target])
        .args(["--format={p}"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cargo = String::from_utf8(output.stdout).unwrap();
    let cargo: BTreeSet<_> =
        cargo.lines().filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty()).collect();
    let reached = reached(&graph);
    assert_eq!(cargo.difference(&reached).count(), 0, "{cargo:?}");
    // `cargo metadata` has the features that dependencies of other platforms enable, and `cargo tree` has not.
    let more: Vec<_> = reached.difference(&cargo).copied().collect();
    assert_eq!(more, ["zerocopy-derive"]);
}
