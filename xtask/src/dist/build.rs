//! The programs: static, and without symbols.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde::Deserialize;

use super::arch::Arch;
use super::command::{cargo, output, run};
use super::release::{PROGRAMS, Release};

/// Prints the flags of rustc. `tests/run` and `configs/container/build` use it, too, so that nothing is built twice.
const RUSTFLAGS: &str = "configs/container/rustflags";

#[derive(Deserialize)]
struct Metadata {
    target_directory: PathBuf,
}

/// Builds the programs for an architecture, and copies them to a directory.
pub(crate) fn programs(release: &Release, arch: Arch, into: &Path) -> anyhow::Result<()> {
    let triple = arch.triple();
    install_target(release, &triple)?;
    let mut build = cargo();
    let flags = output(Command::new(release.root.join(RUSTFLAGS)).arg(arch.name()))?;
    build.current_dir(&release.root).env("RUSTFLAGS", flags.trim());
    build.args(["build", "--locked", "--release", "--target", &triple, "--bins"]);
    build.args(PROGRAMS.iter().flat_map(|program| ["-p", program]));
    if !arch.is_native() {
        let variable = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase().replace('-', "_"));
        build.env(variable, arch.tool("gcc"));
    }
    run(&mut build)?;

    let built = target_directory(release)?.join(&triple).join("release");
    fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
    for program in PROGRAMS {
        // The files of cargo keep their symbols, which resolve the addresses of a backtrace.
        let mut strip = Command::new(arch.tool("strip"));
        run(strip.arg("--strip-all").arg("-o").arg(into.join(program)).arg(built.join(program)))?;
    }
    Ok(())
}

/// Installs the standard library for a target if it is missing.
fn install_target(release: &Release, triple: &str) -> anyhow::Result<()> {
    let mut rustc = Command::new("rustc");
    let folder = output(rustc.current_dir(&release.root).args(["--print", "target-libdir", "--target", triple]))?;
    if Path::new(folder.trim()).exists() {
        return Ok(());
    }
    run(Command::new("rustup").current_dir(&release.root).args(["target", "add", triple]))
}

fn target_directory(release: &Release) -> anyhow::Result<PathBuf> {
    let mut metadata = cargo();
    let json = output(metadata.current_dir(&release.root).args(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Metadata = serde_json::from_str(&json).context("cargo metadata in an unknown form")?;
    Ok(metadata.target_directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_scripts_build_with_the_same_flags() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for script in ["tests/run", "configs/container/build"] {
            let text = fs::read_to_string(root.join(script)).unwrap();
            assert!(text.contains(&format!("RUSTFLAGS=$({RUSTFLAGS})")), "{script} has other flags");
        }
    }
}
