//! The part of `cargo metadata --format-version 1` that is read (The Cargo Book, "cargo metadata").

use std::collections::HashMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::purpose::Kind;

#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Package>,
    pub(super) workspace_members: Vec<String>,
    pub(super) workspace_root: PathBuf,
    pub(super) resolve: Resolve,
}

#[derive(Deserialize)]
pub(super) struct Package {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) manifest_path: PathBuf,
    pub(super) dependencies: Vec<Dependency>,
    pub(super) features: HashMap<String, Vec<String>>,
    #[serde(default)]
    pub(super) targets: Vec<Target>,
}

/// A library, program, test, benchmark, example or build script.
#[derive(Deserialize)]
pub(super) struct Target {
    pub(super) kind: Vec<String>,
    pub(super) name: String,
    pub(super) src_path: PathBuf,
}

/// A dependency, as the manifest declares it.
#[derive(Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) rename: Option<String>,
    pub(super) kind: Option<Kind>,
    pub(super) optional: bool,
}

#[derive(Deserialize)]
pub(super) struct Resolve {
    pub(super) nodes: Vec<Node>,
}

#[derive(Deserialize)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) deps: Vec<NodeDep>,
    /// The enabled features.
    pub(super) features: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct NodeDep {
    pub(super) pkg: String,
    pub(super) dep_kinds: Vec<DepKind>,
}

#[derive(Deserialize)]
pub(super) struct DepKind {
    pub(super) kind: Option<Kind>,
}
