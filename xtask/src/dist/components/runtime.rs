//! The libraries that are linked into every program, but are not crates.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::dist::arch::Arch;
use crate::dist::command::output;
use crate::dist::component::Component;
use crate::dist::release::Release;
use crate::dist::requirements::library;

/// The static libraries of C: that of functions, and that of GCC for unwinding.
const LIBRARIES: [(&str, &str); 2] =
    [("libc.a", "LGPL-2.1-or-later"), ("libgcc_eh.a", "GPL-3.0-or-later WITH GCC-exception-3.1")];

/// Rust's standard library, glibc and libgcc.
pub(super) fn read(release: &Release, arch: Arch) -> anyhow::Result<Vec<Component>> {
    let rustc = output(Command::new("rustc").current_dir(&release.root).arg("--version"))?;
    let version = rustc.split(' ').nth(1).with_context(|| format!("rustc --version printed {rustc:?}"))?;
    let mut components = vec![Component {
        name: "rust-std".to_owned(),
        version: version.to_owned(),
        license: Some("MIT OR Apache-2.0".to_owned()),
        purl: Some(format!("pkg:generic/rust-std@{version}")),
        checksum: None,
        folder: None,
        uses: BTreeSet::new(),
    }];
    for (file, license) in LIBRARIES {
        components.push(packaged(arch, file, license).with_context(|| format!("the Debian package of {file}"))?);
    }
    Ok(components)
}

/// The Debian package of a library.
fn packaged(arch: Arch, file: &str, license: &str) -> anyhow::Result<Component> {
    let path = library(arch, file).context("the compiler does not find it")?;
    let path = Path::new(&path).canonicalize()?;
    let found = output(Command::new("dpkg-query").arg("--search").arg(&path))?;
    let (package, _) = found.split_once(": ").with_context(|| format!("dpkg-query printed {found:?}"))?;
    let fields = output(Command::new("dpkg-query").args([
        "--show",
        "--showformat=${Package} ${Version} ${Architecture}",
        package,
    ]))?;
    let [name, version, architecture] = fields.split(' ').collect::<Vec<_>>()[..] else {
        anyhow::bail!("dpkg-query printed {fields:?}");
    };
    Ok(Component {
        name: name.to_owned(),
        version: version.to_owned(),
        license: Some(license.to_owned()),
        purl: Some(format!("pkg:deb/{}/{name}@{}?arch={architecture}", distribution(), escaped(version))),
        checksum: None,
        folder: Some(PathBuf::from("/usr/share/doc").join(name)),
        uses: BTreeSet::new(),
    })
}

/// `debian` or one of its relatives (os-release(5)).
fn distribution() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let id = text.lines().find_map(|line| line.strip_prefix("ID="));
    id.unwrap_or("debian").trim_matches('"').to_owned()
}

/// Versions of Debian contain these characters, which mean something else in a URL.
fn escaped(version: &str) -> String {
    version.replace('%', "%25").replace('+', "%2B").replace(':', "%3A")
}
