//! `install.sh`, with a small release that this program writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::*;

/// A release whose programs are small scripts, and a directory to install it in.
struct Fake {
    dir: tempfile::TempDir,
    release: Release,
}

impl Fake {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let archs = Target::All.archs();
        let release = Release { root: root.to_owned(), version: Version::default(), archs, epoch: 1_700_000_000 };
        let fake = Self { dir, release };
        fs::create_dir(fake.out()).unwrap();
        let documents = Tree::create(fake.dir.path().join("documents")).unwrap();
        documents.write("share/man/man1/atoll.1", "page", Mode::Data).unwrap();
        for &arch in &fake.release.archs {
            let programs = Tree::create(fake.dir.path().join(arch.name())).unwrap();
            for program in PROGRAMS {
                let script = format!("#!/bin/sh\necho {program} for {}\n", arch.name());
                programs.write(program, script, Mode::Program).unwrap();
            }
            let parts = Parts { programs: programs.root(), documents: documents.root(), notices: "notices" };
            let work = fake.dir.path().join("work");
            tarball::write(&fake.release, arch, parts, &work, &fake.out()).unwrap();
            tarball::write_plugin(&fake.release, arch, parts, &work, &fake.out()).unwrap();
        }
        checksums::write(&fake.out()).unwrap();
        fake
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn prefix(&self) -> PathBuf {
        self.dir.path().join("prefix")
    }

    fn archive(&self, arch: Arch) -> PathBuf {
        self.out().join(format!("{}.tar.gz", self.release.stem("atoll", arch)))
    }

    /// Runs install.sh with a prefix and these arguments.
    fn install(&self, args: &[&str]) -> Output {
        let mut command = Command::new("sh");
        command.arg(self.release.root.join("install.sh")).args(args).arg("--prefix").arg(self.prefix());
        command.env("TMPDIR", self.dir.path()).output().unwrap()
    }

    /// Runs install.sh with the directory of the release.
    fn install_from(&self, args: &[&str]) -> Output {
        let out = self.out();
        self.install(&[&["--from", out.to_str().unwrap()], args].concat())
    }

    /// The command fails, says why, and leaves nothing behind.
    #[track_caller]
    fn refuses(&self, output: &Output, code: i32, why: &str) {
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && text.contains(why), "{output:?}");
        assert!(!self.prefix().exists());
        let left = fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.filter(|name| name.to_string_lossy().starts_with("atoll-install-")).count(), 0);
    }

    #[track_caller]
    fn runs(&self, program: &str, printed: &str) {
        let output = Command::new(self.prefix().join("bin").join(program)).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{printed}\n"));
    }
}

#[test]
fn a_release_is_installed() {
    let fake = Fake::new();
    let output = fake.install_from(&["--arch", "x86_64"]);
    assert!(output.status.success(), "{output:?}");
    fake.runs("proxy-server", "proxy-server for x86_64");
    fake.runs("kubectl-atoll", "atoll for x86_64");
    for file in [
        "lib/systemd/system/proxy-agent.service",
        "share/atoll/helm/atoll/Chart.yaml",
        "share/atoll/kubernetes/agent-rbac.yaml",
        "share/atoll/observability/alerts.yaml",
        "share/atoll/proxy-server.yaml",
        "share/doc/atoll/LICENSE",
        "share/doc/atoll/third-party-notices",
        "share/man/man1/atoll.1",
    ] {
        assert!(fake.prefix().join(file).is_file(), "{file}");
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("bin is not in PATH"), "{printed}");

    // An upgrade replaces files, also while they run, and leaves no others behind.
    let file = fs::File::open(fake.prefix().join("bin/atoll")).unwrap();
    let url = format!("file://{}", fake.out().display());
    let pinned = checksums::of(&fake.archive(Arch::Aarch64)).unwrap();
    let output = fake.install(&["--base-url", &url, "--arch=arm64", "--sha256", &pinned]);
    assert!(output.status.success(), "{output:?}");
    fake.runs("atoll", "atoll for aarch64");
    assert!(std::io::read_to_string(file).unwrap().contains("x86_64"));
    let mut names: Vec<_> =
        fs::read_dir(fake.prefix().join("bin")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["atoll", "kubectl-atoll", "proxy-agent", "proxy-server"]);
}

#[test]
fn a_wrong_checksum_is_refused() {
    let fake = Fake::new();
    let other = checksums::of(&fake.archive(Arch::X86_64)).unwrap();
    let output = fake.install_from(&["--arch", "aarch64", "--sha256", &other]);
    fake.refuses(&output, 1, "is wrong, so nothing is installed");

    // A valid archive with another program.
    fs::copy(fake.archive(Arch::X86_64), fake.archive(Arch::Aarch64)).unwrap();
    let output = fake.install_from(&["--arch", "aarch64"]);
    fake.refuses(&output, 1, &format!("actual   {other}"));

    let mut bytes = fs::read(fake.archive(Arch::X86_64)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(fake.archive(Arch::X86_64), bytes).unwrap();
    fake.refuses(&fake.install_from(&["--arch", "x86_64"]), 1, &format!("expected {other}"));
}

#[test]
fn a_release_without_the_archive_is_refused() {
    let fake = Fake::new();
    fake.refuses(&fake.install_from(&["--arch=x86_64", "--version=9.9.9"]), 1, "no archive of 9.9.9 for x86_64");
    fs::remove_file(fake.archive(Arch::X86_64)).unwrap();
    fake.refuses(&fake.install_from(&["--arch", "x86_64"]), 1, "cannot read");
    fake.refuses(&fake.install(&["--base-url", "file:///nowhere"]), 1, "cannot download file:///nowhere/SHA256SUMS");

    // Names that would leave the directory of the download do not count.
    let sums = fs::read_to_string(fake.out().join(checksums::FILE)).unwrap();
    fs::write(fake.out().join(checksums::FILE), sums.replace("  atoll-", "  ../atoll-")).unwrap();
    fake.refuses(&fake.install_from(&["--arch", "aarch64"]), 1, "no archive of any version for aarch64");
    let twice = format!("{sums}{}", sums.replace("atoll-", "atoll-9."));
    fs::write(fake.out().join(checksums::FILE), twice).unwrap();
    fake.refuses(&fake.install_from(&["--arch", "aarch64"]), 1, "set --version");
}

#[test]
fn invalid_options_are_refused() {
    let fake = Fake::new();
    for (args, why) in [
        (&[][..], "set --base-url or --from"),
        (&["--from", ".", "--base-url", "https://example.com"], "exclude each other"),
        (&["--base-url", "http://example.com"], "set --sha256"),
        (&["--base-url", "ftp://example.com"], "unknown kind of URL"),
        (&["--from", ".", "--arch", "riscv64"], "riscv64"),
        (&["--from", ".", "--sha256", "xyz"], "not a SHA-256 checksum"),
        (&["--from", ".", "--sha256", "ab"], "not a SHA-256 checksum"),
        (&["--from="], "--from requires a value"),
        (&["--force"], "unknown argument: --force"),
    ] {
        fake.refuses(&fake.install(args), 64, why);
    }
    let help = fake.install(&["--help"]);
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(help.status.success() && text.contains("--base-url URL"), "{help:?}");
}
