//! A release of `xtask dist`, as its users install it.
//!
//! The trials run only if the environment variable `ATOLL_TEST_DIST` names the directory of a release for both
//! architectures, because building it takes long. They need root, Debian's dpkg, the emulator of QEMU, Go, and python3
//! with venv.

mod bills;
mod images;
mod packages;
mod plugin;
mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use atoll_tests::paths;
use libtest_mimic::Trial;

use crate::trial::trial;

const VARIABLE: &str = "ATOLL_TEST_DIST";

/// The version of the release.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An architecture of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arch {
    /// In names of files.
    name: &'static str,
    /// In images and Debian packages.
    short: &'static str,
    /// `e_machine` of ELF files (the ABI of the processor).
    machine: u16,
}

const ARCHS: [Arch; 2] =
    [Arch { name: "x86_64", short: "amd64", machine: 62 }, Arch { name: "aarch64", short: "arm64", machine: 183 }];

pub(crate) fn trials() -> Vec<Trial> {
    // Relative to the root, like the default of `xtask dist`.
    let Some(folder) = std::env::var_os(VARIABLE).map(|folder| paths::workspace().join(folder)) else {
        return Vec::new();
    };
    let case = |name: &str, run: fn(&Path) -> anyhow::Result<()>| {
        let folder = folder.clone();
        trial(format!("dist::{name}"), move || run(&folder))
    };
    vec![
        case("aarch64_programs_serve_a_host", programs::aarch64_programs_serve_a_host),
        case("programs_are_static", programs::are_static),
        case("images_are_for_both_architectures", images::are_for_both_architectures),
        case("packages_are_installed_and_removed", packages::are_installed_and_removed),
        case("packages_are_for_both_architectures", packages::are_for_both_architectures),
        case("krew_installs_the_plugin", plugin::krew_installs_it),
        case("all_files_have_checksums", bills::all_files_have_checksums),
        case("bills_of_materials_are_valid", bills::are_valid),
    ]
}

// === impl Arch ===

impl Arch {
    fn is_native(self) -> bool {
        self.name == std::env::consts::ARCH
    }

    /// A command that runs a program for this architecture.
    fn command(self, program: &Path) -> Command {
        if self.is_native() {
            return Command::new(program);
        }
        let mut emulator = Command::new(self.emulator());
        emulator.arg(program);
        emulator
    }

    fn emulator(self) -> String {
        format!("qemu-{}-static", self.name)
    }

    /// The program is for this architecture, and needs no dynamic linker.
    fn check(self, program: &Path) -> anyhow::Result<()> {
        let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        let machine = bytes.get(18..20).map(|two| u16::from_le_bytes([two[0], two[1]]));
        ensure!(bytes.starts_with(b"\x7fELF") && machine == Some(self.machine), "{}: {machine:?}", program.display());
        let headers = output(Command::new("readelf").args(["--program-headers", "--wide"]).arg(program))?;
        ensure!(headers.contains("LOAD") && !headers.contains("INTERP"), "{}:\n{headers}", program.display());
        Ok(())
    }
}

/// Runs a program, which must succeed. Returns its standard output.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    let (printed, problem) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{command:?}: {}\n{printed}{problem}", output.status);
    Ok(printed.into_owned())
}

/// The directory for the tools of these trials. It is kept for the next run.
fn tools() -> anyhow::Result<PathBuf> {
    let folder = paths::workspace().join("target/dist-tools");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
