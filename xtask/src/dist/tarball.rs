//! The archive of all programs, which `install.sh` installs, and that of the plugin of kubectl for krew.

use std::path::Path;

use super::arch::Arch;
use super::archive;
use super::release::{PROGRAMS, Release};
use super::tree::{Mode, Tree};

/// The directories of one build that archives and packages consist of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    /// The programs of an architecture.
    pub(crate) programs: &'a Path,
    /// Man pages and completions, below `share`.
    pub(crate) documents: &'a Path,
    /// The licences of others.
    pub(crate) notices: &'a str,
}

/// Writes the archive with everything.
pub(crate) fn write(release: &Release, arch: Arch, parts: Parts<'_>, work: &Path, out: &Path) -> anyhow::Result<()> {
    let stem = release.stem("atoll", arch);
    let tree = Tree::create(work.join(&stem))?;
    for program in PROGRAMS {
        tree.copy(&parts.programs.join(program), &format!("bin/{program}"), Mode::Program)?;
    }
    tree.link("bin/kubectl-atoll", "atoll")?;
    tree.copy(&release.root.join("LICENSE"), "LICENSE", Mode::Data)?;
    tree.write("share/doc/atoll/third-party-notices", parts.notices, Mode::Data)?;
    tree.copy_all(&parts.documents.join("share"), "share")?;
    let configs = release.root.join("configs");
    for file in ["proxy-server.yaml", "proxy-agent.yaml"] {
        tree.copy(&configs.join(file), &format!("share/atoll/{file}"), Mode::Data)?;
    }
    for folder in ["helm", "kubernetes", "observability"] {
        tree.copy_all(&configs.join(folder), &format!("share/atoll/{folder}"))?;
    }
    // systemd also looks for units in this directory below /usr/local.
    tree.copy_all(&configs.join("systemd"), "lib/systemd/system")?;
    archive::write(&out.join(format!("{stem}.tar.gz")), work, &[&stem], release.epoch)
}

/// Writes the archive of the plugin. Returns its name.
pub(crate) fn write_plugin(
    release: &Release,
    arch: Arch,
    parts: Parts<'_>,
    work: &Path,
    out: &Path,
) -> anyhow::Result<String> {
    let stem = release.stem("kubectl-atoll", arch);
    let tree = Tree::create(work.join(&stem))?;
    tree.copy(&parts.programs.join("atoll"), "kubectl-atoll", Mode::Program)?;
    tree.copy(&release.root.join("LICENSE"), "LICENSE", Mode::Data)?;
    tree.write("third-party-notices", parts.notices, Mode::Data)?;
    let name = format!("{stem}.tar.gz");
    archive::write(&out.join(&name), tree.root(), &["kubectl-atoll", "LICENSE", "third-party-notices"], release.epoch)?;
    Ok(name)
}
