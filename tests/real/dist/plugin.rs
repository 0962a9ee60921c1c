//! The manifest of the plugin, with krew itself.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use super::{ARCHS, VERSION, output, tools};
use crate::plugin::kubectl;

/// The Go module of krew. The Go module proxy has no newer version.
const KREW: &str = "sigs.k8s.io/krew";
const KREW_VERSION: &str = "v0.4.3";

pub(super) fn krew_installs_it(release: &Path) -> anyhow::Result<()> {
    let tools = tools()?;
    for program in ["krew", "validate-krew-manifest"] {
        if !tools.join(program).exists() {
            let mut install = Command::new("go");
            install.args(["install", &format!("{KREW}/cmd/{program}@{KREW_VERSION}")]);
            output(install.env("GOBIN", &tools).env("GOTOOLCHAIN", "local").env("CGO_ENABLED", "0"))?;
        }
    }
    let manifest = release.join("atoll.yaml");
    output(Command::new(tools.join("validate-krew-manifest")).arg("--manifest").arg(&manifest).arg("--skip-install"))?;

    for arch in ARCHS {
        let home = tempfile::Builder::new().prefix("atoll-krew-").tempdir()?;
        let archive = release.join(format!("kubectl-atoll-{VERSION}-linux-{}.tar.gz", arch.name));
        let mut install = Command::new(tools.join("krew"));
        install.arg("install").arg("--manifest").arg(&manifest).arg("--archive").arg(&archive);
        install.env("KREW_ROOT", home.path()).env("KREW_NO_UPGRADE_CHECK", "1");
        // Another platform than that of this machine.
        output(install.env("KREW_OS", "linux").env("KREW_ARCH", arch.short))?;
        let bin = home.path().join("bin");
        arch.check(&bin.join("kubectl-atoll").canonicalize()?)?;
        if arch.is_native() {
            let help = output(kubectl(&bin)?.args(["atoll", "status", "--help"]))?;
            ensure!(help.contains("Usage: kubectl atoll status"), "{help}");
        }
    }
    Ok(())
}
