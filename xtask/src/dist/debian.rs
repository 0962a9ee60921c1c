//! Debian packages: one for each half, and one for `atoll`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::arch::Arch;
use super::command::run;
use super::release::Release;
use super::tarball::Parts;
use super::tree::{Mode, Tree};

/// A package. Its name is `atoll`, or `atoll-` and the name of the program.
#[derive(Clone, Copy, Debug)]
struct Package {
    program: &'static str,
    summary: &'static str,
    description: &'static str,
}

const PACKAGES: [Package; 3] = [
    Package {
        program: "proxy-server",
        summary: "virtual Kubernetes clusters: the half in the cloud",
        description: "The proxy-server serves the endpoints of virtual clusters, and an HTTP proxy to\n \
                      clusters behind NAT. Each of them has a proxy-agent, which opens a tunnel to the\n \
                      proxy-server. The service starts when you have enabled it.",
    },
    Package {
        program: "proxy-agent",
        summary: "virtual Kubernetes clusters: the half at the edge",
        description: "The proxy-agent runs in the network of a Kubernetes API server. It opens a tunnel to\n \
                      the proxy-server, and rewrites the requests of virtual clusters. The service starts\n \
                      when you have enabled it.",
    },
    Package {
        program: "atoll",
        summary: "virtual Kubernetes clusters: the command of operators",
        description: "The command creates certificates and kubeconfigs for proxy-server and proxy-agent,\n \
                      checks and explains their configurations, and shows their status. It is also a plugin\n \
                      of kubectl.",
    },
];

/// The scripts that run when a package with a service is installed or removed (deb-postinst(5)).
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Writes the packages of an architecture.
pub(crate) fn write(
    release: &Release,
    arch: Arch,
    maintainer: &str,
    parts: Parts<'_>,
    work: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    for package in PACKAGES {
        let stem = format!("{}_{}_{}", package.name(), release.version.debian(), arch.short());
        let tree = Tree::create(work.join(&stem))?;
        package.fill(&tree, release, parts)?;
        let size = tree.size()?;
        tree.write("DEBIAN/control", package.control(release, arch, maintainer, size), Mode::Data)?;
        if package.is_service() {
            tree.write("DEBIAN/conffiles", format!("{}\n", package.configuration()), Mode::Data)?;
            for script in SCRIPTS {
                let file = release.root.join("configs/debian").join(script);
                tree.copy(&file, &format!("DEBIAN/{script}"), Mode::Program)?;
            }
        }
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]);
        // Also the latest time of a file in the package. With several threads, xz writes other bytes.
        build.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
        run(build.arg(tree.root()).arg(out.join(format!("{stem}.deb"))))?;
    }
    Ok(())
}

// === impl Package ===

impl Package {
    fn name(self) -> String {
        if self.is_service() { format!("atoll-{}", self.program) } else { self.program.to_owned() }
    }

    fn is_service(self) -> bool {
        self.program != "atoll"
    }

    fn configuration(self) -> String {
        format!("/etc/atoll/{}.yaml", self.program)
    }

    /// Copies everything but the control files.
    fn fill(self, tree: &Tree, release: &Release, parts: Parts<'_>) -> anyhow::Result<()> {
        let Self { program, .. } = self;
        let configs = release.root.join("configs");
        tree.copy(&parts.programs.join(program), &format!("usr/bin/{program}"), Mode::Program)?;
        let doc = format!("usr/share/doc/{}", self.name());
        tree.write(&format!("{doc}/copyright"), COPYRIGHT, Mode::Data)?;
        tree.write(&format!("{doc}/third-party-notices"), parts.notices, Mode::Data)?;
        self.copy_documents(tree, parts.documents)?;
        if self.is_service() {
            let unit = format!("{program}.service");
            tree.copy(&configs.join("systemd").join(&unit), &format!("usr/lib/systemd/system/{unit}"), Mode::Data)?;
            let file = self.configuration();
            tree.copy(&configs.join(format!("{program}.yaml")), file.trim_start_matches('/'), Mode::Data)?;
        } else {
            tree.link("usr/bin/kubectl-atoll", "atoll")?;
            for folder in ["helm", "kubernetes", "observability"] {
                tree.copy_all(&configs.join(folder), &format!("usr/share/atoll/{folder}"))?;
            }
        }
        Ok(())
    }

    /// Copies man pages, compressed, and completions.
    fn copy_documents(self, tree: &Tree, documents: &Path) -> anyhow::Result<()> {
        let Self { program, .. } = self;
        let share = documents.join("share");
        let section = if self.is_service() { "man8" } else { "man1" };
        for entry in fs::read_dir(share.join("man").join(section))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&format!("{program}.")) || name.starts_with(&format!("{program}-")) {
                let page = format!("usr/share/man/{section}/{name}");
                tree.copy(&entry.path(), &page, Mode::Data)?;
                run(Command::new("gzip").args(["-9", "--no-name"]).arg(tree.root().join(page)))?;
            }
        }
        for (from, to) in [
            (format!("bash-completion/completions/{program}"), format!("bash-completion/completions/{program}")),
            // Debian's zsh has a directory of its own for packages.
            (format!("zsh/site-functions/_{program}"), format!("zsh/vendor-completions/_{program}")),
            (format!("fish/vendor_completions.d/{program}.fish"), format!("fish/vendor_completions.d/{program}.fish")),
        ] {
            tree.copy(&share.join(from), &format!("usr/share/{to}"), Mode::Data)?;
        }
        Ok(())
    }

    /// The control file (deb-control(5)).
    fn control(self, release: &Release, arch: Arch, maintainer: &str, size: u64) -> String {
        // `adduser` creates the user of the service. `atoll` checks its configuration.
        let relations = if self.is_service() { "Depends: adduser\nRecommends: atoll\n" } else { "" };
        format!(
            "Package: {}\nVersion: {}\nArchitecture: {}\nMaintainer: {maintainer}\nInstalled-Size: {}\n\
             {relations}Section: net\nPriority: optional\nDescription: {}\n {}\n",
            self.name(),
            release.version.debian(),
            arch.short(),
            size.div_ceil(1024),
            self.summary,
            self.description,
        )
    }
}

/// <https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/>
const COPYRIGHT: &str = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Atoll
Comment: The program contains libraries of others; see third-party-notices.

Files: *
Copyright: The authors of Atoll
License: Apache-2.0
 On Debian systems, /usr/share/common-licenses/Apache-2.0 has the text of the
 license.
";

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::version::Version;
    use super::*;

    #[test]
    fn the_control_files_have_the_fields_that_dpkg_requires() {
        let version: Version = format!("{}-rc.1", env!("CARGO_PKG_VERSION")).parse().unwrap();
        let release = Release { root: PathBuf::new(), version, archs: vec![Arch::Aarch64], epoch: 0 };
        let control = PACKAGES.map(|package| package.control(&release, Arch::Aarch64, "Jane <jane@example.com>", 1025));
        for (text, name) in control.iter().zip(["atoll-proxy-server", "atoll-proxy-agent", "atoll"]) {
            let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            assert_eq!(value("Package"), Some(name));
            assert_eq!(value("Version").unwrap(), format!("{}~rc.1", env!("CARGO_PKG_VERSION")));
            assert_eq!([value("Architecture"), value("Installed-Size")], [Some("arm64"), Some("2")]);
            assert_eq!(value("Depends"), (name != "atoll").then_some("adduser"));
            // Lines of the description begin with a space, and the file ends with a newline.
            let (_, description) = text.split_once("Description: ").unwrap();
            assert!(text.ends_with(".\n") && description.lines().skip(1).all(|line| line.starts_with(' ')), "{text}");
            assert!(text.lines().all(|line| line.len() <= 90), "{text}");
        }
    }
}
