//! What the programs are linked from: our crates, crates of others, and the runtime libraries of Rust and C.
//!
//! `cargo tree` says what is really built, and `cargo metadata` the rest. Procedural macros and build scripts are not
//! in the programs.

mod lock;
mod runtime;
mod tree;

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::Context as _;
use serde::Deserialize;

use super::arch::Arch;
use super::command::{cargo, output};
use super::component::Component;
use super::release::{PROGRAMS, Release};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None for our own crates.
    source: Option<String>,
    manifest_path: PathBuf,
}

/// All components of the programs for this architecture.
pub(crate) fn read(release: &Release, arch: Arch) -> anyhow::Result<Vec<Component>> {
    let triple = arch.triple();
    let in_workspace = |args: &[&str]| output(cargo().current_dir(&release.root).args(args).arg("--locked"));
    let mut args = vec!["tree", "--target", &triple, "--edges=normal,no-proc-macro", "--prefix=depth", "--format={p}"];
    args.extend(PROGRAMS.iter().flat_map(|program| ["-p", program]));
    let tree = tree::parse(&in_workspace(&args)?)?;
    let metadata = in_workspace(&["metadata", "--format-version=1", "--filter-platform", &triple])?;
    let metadata: Metadata = serde_json::from_str(&metadata).context("cargo metadata in an unknown form")?;
    let packages: HashMap<_, _> =
        metadata.packages.iter().map(|package| ((package.name.as_str(), package.version.as_str()), package)).collect();
    let lock = std::fs::read_to_string(release.root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let checksums = lock::checksums(&lock);

    let mut components = Vec::new();
    for node in tree {
        let key = (node.name.as_str(), node.version.as_str());
        let package = packages.get(&key).with_context(|| format!("cargo metadata lacks {} {}", key.0, key.1))?;
        components.push(Component {
            license: package.license.as_deref().map(expression),
            purl: package.source.as_ref().map(|_| format!("pkg:cargo/{}@{}", key.0, key.1.replace('+', "%2B"))),
            checksum: checksums.get(&key).map(|&sum| sum.to_owned()),
            folder: package.manifest_path.parent().map(PathBuf::from),
            uses: node.uses,
            name: node.name,
            version: node.version,
        });
    }
    // Every program uses them.
    let runtime = runtime::read(release, arch)?;
    let added = components.len()..components.len() + runtime.len();
    for component in components.iter_mut().filter(|component| PROGRAMS.contains(&component.name.as_str())) {
        component.uses.extend(added.clone());
    }
    components.extend(runtime);
    Ok(components)
}

/// Old crates write a slash for `OR`.
fn expression(license: &str) -> String {
    if license.contains('/') {
        license.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
    } else {
        license.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licenses_are_expressions() {
        assert_eq!(expression("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(expression("Apache-2.0 / MIT"), "Apache-2.0 OR MIT");
        assert_eq!(expression("(MIT OR Apache-2.0) AND Unicode-3.0"), "(MIT OR Apache-2.0) AND Unicode-3.0");
    }
}
