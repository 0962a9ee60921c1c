//! A directory that becomes an archive or a package. The modes of its files do not depend on the user's umask.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// A directory.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
}

/// Who may do what with a file. Everybody may read all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Program,
    Data,
}

// === impl Tree ===

impl Tree {
    /// A new directory.
    pub(crate) fn create(root: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
        fs::set_permissions(&root, Permissions::from_mode(0o755))?;
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>, mode: Mode) -> anyhow::Result<()> {
        let file = self.place(path)?;
        fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(fs::set_permissions(&file, mode.permissions())?)
    }

    /// Copies a file.
    pub(crate) fn copy(&self, from: &Path, path: &str, mode: Mode) -> anyhow::Result<()> {
        let file = self.place(path)?;
        fs::copy(from, &file).with_context(|| format!("cannot copy {} to {}", from.display(), file.display()))?;
        Ok(fs::set_permissions(&file, mode.permissions())?)
    }

    /// Copies a directory of data with everything in it. Returns the number of files.
    pub(crate) fn copy_all(&self, from: &Path, path: &str) -> anyhow::Result<usize> {
        let mut copied = 0;
        for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(|name| format!("{path}/{name}")) else {
                bail!("{} is not UTF-8", entry.path().display());
            };
            if entry.file_type()?.is_dir() {
                copied += self.copy_all(&entry.path(), &name)?;
            } else {
                self.copy(&entry.path(), &name, Mode::Data)?;
                copied += 1;
            }
        }
        Ok(copied)
    }

    /// Creates a symbolic link.
    pub(crate) fn link(&self, path: &str, target: &str) -> anyhow::Result<()> {
        let link = self.place(path)?;
        symlink(target, &link).with_context(|| format!("cannot create {}", link.display()))
    }

    /// The sum of the sizes of its files, in bytes.
    pub(crate) fn size(&self) -> anyhow::Result<u64> {
        size(&self.root)
    }

    /// The place of a file, whose directory exists.
    fn place(&self, path: &str) -> anyhow::Result<PathBuf> {
        let mut folder = self.root.clone();
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            folder.push(name);
            if names.peek().is_some() && !folder.exists() {
                fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
                fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
            }
        }
        Ok(folder)
    }
}

// === impl Mode ===

impl Mode {
    fn permissions(self) -> Permissions {
        Permissions::from_mode(match self {
            Self::Program => 0o755,
            Self::Data => 0o644,
        })
    }
}

fn size(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}
