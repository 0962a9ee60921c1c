//! The programs that a build needs, checked before it begins, because it takes long.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use super::arch::Arch;
use super::command::output;

/// Programs, and the Debian packages that have them.
const ALWAYS: [(&str, &str); 8] = [
    ("git", "git"),
    ("make", "make"), // of jemalloc
    ("tar", "tar"),
    ("gzip", "gzip"),
    ("sha256sum", "coreutils"),
    ("dpkg-deb", "dpkg"),
    ("dpkg-query", "dpkg"),
    ("buildah", "buildah"),
];

/// Fails if something is missing, and says how to install it.
pub(crate) fn check(archs: &[Arch]) -> anyhow::Result<()> {
    let packages = missing(archs);
    ensure!(
        packages.is_empty(),
        "these programs are not installed; on Debian, run:\n  apt-get install --no-install-recommends {}",
        packages.join(" ")
    );
    Ok(())
}

/// The static C library that a compiler uses, if there is one.
pub(crate) fn library(arch: Arch, name: &str) -> Option<String> {
    // GCC prints the name itself if it finds no file.
    let path = output(Command::new(arch.tool("gcc")).arg(format!("-print-file-name={name}"))).ok()?;
    Some(path.trim().to_owned()).filter(|path| path.contains('/'))
}

fn missing(archs: &[Arch]) -> Vec<String> {
    let mut packages: Vec<String> =
        ALWAYS.iter().filter(|(program, _)| !is_installed(program)).map(|(_, package)| (*package).to_owned()).collect();
    for arch in archs {
        let [compiler, libc] = arch.compiler_packages();
        if !is_installed(&arch.tool("gcc")) || !is_installed(&arch.tool("strip")) {
            packages.push(compiler.to_owned());
        }
        if library(*arch, "libc.a").is_none() {
            packages.push(libc.to_owned());
        }
    }
    // It writes the man pages of a foreign architecture.
    if let [arch] = archs
        && !arch.is_native()
        && !is_installed(&arch.emulator())
    {
        packages.push("qemu-user-static".to_owned());
    }
    packages.dedup();
    packages
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_the_path() {
        assert!(is_installed("sh"));
        assert!(!is_installed("a-program-that-nobody-has"));
    }
}
