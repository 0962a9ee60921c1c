//! The images for all architectures, as OCI archives. `configs/container/build` builds them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::command::run;
use super::release::Release;

/// The programs that have an image.
const PROGRAMS: [&str; 2] = ["proxy-agent", "proxy-server"];

/// The maximum size of an image, in bytes. A site can have a slow connection.
const LIMIT: u64 = 20_000_000;

/// Writes the archives. `programs` has a directory for each architecture.
pub(crate) fn write(release: &Release, programs: &Path, work: &Path, out: &Path) -> anyhow::Result<()> {
    for arch in &release.archs {
        for program in PROGRAMS {
            let size = programs.join(arch.name()).join(program).metadata()?.len();
            // The image contains nothing else.
            ensure!(size <= LIMIT, "{program} for {} has {size} bytes, and an image has at most {LIMIT}", arch.name());
        }
    }
    let mut build = Command::new(release.root.join("configs/container/build"));
    build.arg("--binaries").arg(programs).arg("--out").arg(work).args(["--version", &release.version.to_string()]);
    run(build.env("SOURCE_DATE_EPOCH", release.epoch.to_string()))?;
    for program in PROGRAMS {
        let (from, to) =
            (work.join(format!("{program}.tar")), out.join(format!("{program}-{}-oci.tar", release.version)));
        fs::rename(&from, &to).with_context(|| format!("cannot rename {} to {}", from.display(), to.display()))?;
    }
    Ok(())
}
