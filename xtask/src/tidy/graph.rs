//! Which crate depends on which, from `cargo metadata`.
//!
//! The `resolve` part of that output lists more than is built: a feature like `alloc = ["ring?/alloc"]` adds an edge to
//! an optional crate that nothing enabled (rust-lang/cargo#10801). This module omits such edges, by the rules of the
//! Cargo Book, "Features". So a crate that only the lock file names does not count as a dependency.

mod metadata;
mod purpose;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use metadata::{Metadata, Node};
pub(crate) use purpose::Use;

/// The crates of the workspace and all their dependencies.
#[derive(Debug)]
pub(crate) struct Graph {
    packages: Vec<Package>,
    members: Vec<PackageIndex>,
}

/// A package of one [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PackageIndex(usize);

#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Relative to the root of the workspace, if the package is a member.
    pub(crate) manifest: PathBuf,
    /// The library and the programs: for each, its name and its root file, relative to the root of the workspace.
    pub(crate) units: Vec<(String, PathBuf)>,
    edges: Vec<Edge>,
}

#[derive(Debug)]
struct Edge {
    to: PackageIndex,
    uses: BTreeSet<Use>,
}

// === impl Package ===

impl Package {
    pub(crate) fn folder(&self) -> &Path {
        self.manifest.parent().unwrap_or(Path::new(""))
    }
}

// === impl Graph ===

impl Graph {
    /// Asks cargo about the workspace at `root`, as it is built for `targets`.
    pub(crate) fn load(root: &Path, targets: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(root).args(["metadata", "--format-version=1", "--locked"]);
        for target in targets {
            command.args(["--filter-platform", target]);
        }
        let output = command.output().context("cannot run cargo")?;
        ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
        Self::read(&output.stdout)
    }

    /// Reads what `cargo metadata` printed.
    pub(crate) fn read(json: &[u8]) -> anyhow::Result<Self> {
        let metadata: Metadata = serde_json::from_slice(json).context("cargo metadata in an unknown form")?;
        let place: HashMap<&str, usize> =
            metadata.packages.iter().enumerate().map(|(n, p)| (p.id.as_str(), n)).collect();
        let find = |id: &str| place.get(id).copied().with_context(|| format!("cargo metadata lacks the package {id}"));

        let mut packages: Vec<Package> = metadata
            .packages
            .iter()
            .map(|package| Package {
                name: package.name.clone(),
                manifest: package
                    .manifest_path
                    .strip_prefix(&metadata.workspace_root)
                    .unwrap_or(&package.manifest_path)
                    .to_owned(),
                units: units(package, &metadata.workspace_root),
                edges: Vec::new(),
            })
            .collect();
        for node in &metadata.resolve.nodes {
            let from = find(&node.id)?;
            for dep in &node.deps {
                let to = find(&dep.pkg)?;
                let uses = uses_in_force(&metadata.packages[from], node, &metadata.packages[to].name, dep);
                if !uses.is_empty() {
                    packages[from].edges.push(Edge { to: PackageIndex(to), uses });
                }
            }
        }
        let members =
            metadata.workspace_members.iter().map(|id| find(id).map(PackageIndex)).collect::<Result<_, _>>()?;
        Ok(Self { packages, members })
    }

    pub(crate) fn package(&self, index: PackageIndex) -> &Package {
        &self.packages[index.0]
    }

    /// The crates of the workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = (PackageIndex, &Package)> {
        self.members.iter().map(|&index| (index, self.package(index)))
    }

    pub(crate) fn member_names(&self) -> Vec<&str> {
        self.members().map(|(_, package)| package.name.as_str()).collect()
    }

    /// The direct dependencies of a package, and their uses.
    pub(crate) fn direct(&self, from: PackageIndex) -> impl Iterator<Item = (&Package, &BTreeSet<Use>)> {
        self.package(from).edges.iter().map(|edge| (self.package(edge.to), &edge.uses))
    }

    /// The shortest chain of normal dependencies from a member to a package that `wanted` accepts, both included.
    pub(crate) fn chain(&self, from: PackageIndex, wanted: impl Fn(&Package) -> bool) -> Option<Vec<&Package>> {
        // Breadth first, so that the first path to a package is a shortest one.
        let mut before = HashMap::new();
        let mut open = VecDeque::from([from]);
        while let Some(at) = open.pop_front() {
            if at != from && wanted(self.package(at)) {
                let mut chain: Vec<_> =
                    std::iter::successors(Some(at), |at| before.get(at).copied()).map(|at| self.package(at)).collect();
                chain.reverse();
                return Some(chain);
            }
            for edge in self.package(at).edges.iter().filter(|edge| edge.uses.contains(&Use::Normal)) {
                if edge.to != from && !before.contains_key(&edge.to) {
                    before.insert(edge.to, at);
                    open.push_back(edge.to);
                }
            }
        }
        None
    }
}

/// The name of a unit. If a package has only one unit, both have the same name. Otherwise, programs are
/// `package/program`.
fn units(package: &metadata::Package, root: &Path) -> Vec<(String, PathBuf)> {
    let is = |target: &metadata::Target, kind: &str| target.kind.iter().any(|k| k == kind);
    let is_shipped = |target: &&metadata::Target| ["lib", "proc-macro", "bin"].iter().any(|kind| is(target, kind));
    let shipped: Vec<_> = package.targets.iter().filter(is_shipped).collect();
    let unit = |target: &&metadata::Target| {
        let is_one_of_several = shipped.len() > 1 && is(target, "bin");
        let name = if is_one_of_several { format!("{}/{}", package.name, target.name) } else { package.name.clone() };
        (name, target.src_path.strip_prefix(root).unwrap_or(&target.src_path).to_owned())
    };
    shipped.iter().map(unit).collect()
}

/// The actual uses of an edge: its declarations that are not optional, or that a feature has enabled.
fn uses_in_force(from: &metadata::Package, node: &Node, to: &str, dep: &metadata::NodeDep) -> BTreeSet<Use> {
    let turned_on: BTreeSet<&str> = node
        .features
        .iter()
        .flat_map(|feature| from.features.get(feature).into_iter().flatten())
        .filter_map(|value| match value.split_once('/') {
            Some((name, _)) if !name.ends_with('?') => Some(name),
            Some(_) => None,
            None => value.strip_prefix("dep:"),
        })
        .collect();
    let declared = from.dependencies.iter().filter(|declared| {
        let key = declared.rename.as_deref().unwrap_or(&declared.name);
        declared.name == to && (!declared.optional || turned_on.contains(key))
    });
    declared
        .map(|declared| declared.kind.into())
        .filter(|&declared| dep.dep_kinds.iter().any(|kind| Use::from(kind.kind) == declared))
        .collect()
}

/// `a -> b -> c`, for a message.
pub(crate) fn arrows(chain: &[&Package]) -> String {
    chain.iter().map(|package| package.name.as_str()).collect::<Vec<_>>().join(" -> ")
}

#[cfg(test)]
pub(super) mod tests;
