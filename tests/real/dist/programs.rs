//! The programs of the archives, as `install.sh` installs them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use super::{ARCHS, Arch, VARIABLE, output};

const PROGRAMS: [&str; 3] = ["proxy-server", "proxy-agent", "atoll"];

/// Trials of this suite in which all three programs take part: an agent opens a tunnel, `atoll status` shows it, and
/// kubectl gets objects, watches them, and executes commands in a physical and in a virtual cluster.
const EMULATED: [&str; 3] =
    ["physical::kubectl_through_proxy_url", "operator::status_follows_the_agent", "virtual::streams_by_proxy"];

/// The time limit of such a trial, in seconds. An emulated program takes about ten times as long.
const LIMIT: &str = "300";

pub(super) fn are_static(release: &Path) -> anyhow::Result<()> {
    for arch in ARCHS {
        let prefix = installed(release, arch)?;
        for program in PROGRAMS {
            let file = prefix.path().join("bin").join(program);
            arch.check(&file)?;
            let version = output(arch.command(&file).arg("--version"))?;
            ensure!(version == format!("{program} {}\n", super::VERSION), "{version}");
        }
        for page in ["man1/atoll-certs-init.1", "man8/proxy-server.8"] {
            ensure!(prefix.path().join("share/man").join(page).is_file(), "no {page}");
        }
    }
    Ok(())
}

pub(super) fn aarch64_programs_serve_a_host(release: &Path) -> anyhow::Result<()> {
    let [_, aarch64] = ARCHS;
    let prefix = installed(release, aarch64)?;
    let wrappers = prefix.path().join("emulated");
    fs::create_dir(&wrappers)?;
    for program in PROGRAMS {
        let file = prefix.path().join("bin").join(program);
        aarch64.check(&file)?;
        let emulator = if aarch64.is_native() { String::new() } else { aarch64.emulator() };
        let wrapper = wrappers.join(program);
        fs::write(&wrapper, format!("#!/bin/sh\nexec {emulator} '{}' \"$@\"\n", file.display()))?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    }
    for trial in EMULATED {
        // This suite itself, with other programs.
        let mut suite = Command::new("timeout");
        suite.arg(LIMIT).arg(std::env::current_exe()?).args(["--exact", trial]);
        suite.env("ATOLL_BIN_DIR", &wrappers).env_remove(VARIABLE);
        for half in ["PROXY_AGENT", "PROXY_SERVER", "ATOLL"] {
            suite.env_remove(format!("ATOLL_BIN_DIR_{half}"));
        }
        let printed = output(&mut suite)?;
        ensure!(printed.contains("1 passed; 0 failed"), "{trial}:\n{printed}");
    }
    Ok(())
}

/// Installs a release for this architecture in a directory.
fn installed(release: &Path, arch: Arch) -> anyhow::Result<tempfile::TempDir> {
    let prefix = tempfile::Builder::new().prefix("atoll-dist-").tempdir()?;
    let mut install = Command::new("sh");
    install.arg(release.join("install.sh")).args(["--arch", arch.name]).arg("--from").arg(release);
    output(install.arg("--prefix").arg(prefix.path()))?;
    Ok(prefix)
}
