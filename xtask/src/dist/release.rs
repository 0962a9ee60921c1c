//! What all files of a release have in common.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::arch::Arch;
use super::command::output;
use super::version::Version;

/// The programs.
pub(crate) const PROGRAMS: [&str; 3] = ["proxy-server", "proxy-agent", "atoll"];

/// A release.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    /// The root of the workspace.
    pub(crate) root: PathBuf,
    pub(crate) version: Version,
    /// In the order in which they are built.
    pub(crate) archs: Vec<Arch>,
    /// The time of all files, in seconds since 1970. With the time of the build, no two builds would be equal.
    pub(crate) epoch: u64,
}

// === impl Release ===

impl Release {
    /// The release of the commit that is checked out, or with the time of `SOURCE_DATE_EPOCH`
    /// (<https://reproducible-builds.org/specs/source-date-epoch/>).
    pub(crate) fn of_workspace(root: &Path, version: Version, archs: Vec<Arch>) -> anyhow::Result<Self> {
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))
                .context("the time of the release is that of the last commit, unless SOURCE_DATE_EPOCH is set")?,
        };
        let epoch = epoch.trim().parse().with_context(|| format!("{epoch:?} is not a time in seconds"))?;
        Ok(Self { root: root.to_owned(), version, archs, epoch })
    }

    /// The time of all files, in the form of RFC 3339.
    pub(crate) fn timestamp(&self) -> anyhow::Result<String> {
        let date = output(Command::new("date").args(["--utc", "--date", &format!("@{}", self.epoch), "+%FT%TZ"]))?;
        Ok(date.trim().to_owned())
    }

    /// The name of the archive of `what` for this architecture, without its extension.
    pub(crate) fn stem(&self, what: &str, arch: Arch) -> String {
        format!("{what}-{}-linux-{}", self.version, arch.name())
    }
}
