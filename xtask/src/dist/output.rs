//! The directory of a release. It is complete, or it is not there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::checksums;

/// A directory that is not complete yet, and one for intermediate files. Both are beside the final directory.
#[derive(Debug)]
pub(crate) struct Output {
    final_folder: PathBuf,
    folder: PathBuf,
    work: PathBuf,
}

// === impl Output ===

impl Output {
    /// Creates both directories, and removes those of an earlier attempt.
    pub(crate) fn begin(final_folder: PathBuf) -> anyhow::Result<Self> {
        // Never remove files that somebody else has written.
        if final_folder.exists() && !final_folder.join(checksums::FILE).exists() && !is_empty(&final_folder)? {
            bail!("{} is neither empty nor an earlier release: choose another --out", final_folder.display());
        }
        let beside = |suffix: &str| {
            let mut name = final_folder.clone().into_os_string();
            name.push(suffix);
            let folder = PathBuf::from(name);
            remove(&folder)?;
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
            anyhow::Ok(folder)
        };
        let (folder, work) = (beside(".partial")?, beside(".work")?);
        Ok(Self { final_folder, folder, work })
    }

    /// The directory of the files of the release.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A directory for intermediate files.
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// Replaces the final directory. Returns its path.
    pub(crate) fn finish(self) -> anyhow::Result<PathBuf> {
        remove(&self.final_folder)?;
        fs::rename(&self.folder, &self.final_folder)
            .with_context(|| format!("cannot create {}", self.final_folder.display()))?;
        remove(&self.work)?;
        Ok(self.final_folder)
    }
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

fn is_empty(folder: &Path) -> anyhow::Result<bool> {
    let mut entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    Ok(entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_earlier_release_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("dist");
        let output = Output::begin(folder.clone()).unwrap();
        fs::write(output.folder().join(checksums::FILE), "first").unwrap();
        // Nothing is there before the end.
        assert!(!folder.exists());
        assert_eq!(output.finish().unwrap(), folder);
        let output = Output::begin(folder.clone()).unwrap();
        fs::write(output.folder().join(checksums::FILE), "second").unwrap();
        assert_eq!(fs::read_to_string(folder.join(checksums::FILE)).unwrap(), "first");
        output.finish().unwrap();
        assert_eq!(fs::read_to_string(folder.join(checksums::FILE)).unwrap(), "second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

        fs::remove_file(folder.join(checksums::FILE)).unwrap();
        Output::begin(folder.clone()).unwrap();
        fs::write(folder.join("letter"), "").unwrap();
        assert!(Output::begin(folder).unwrap_err().to_string().contains("choose another"));
    }
}
