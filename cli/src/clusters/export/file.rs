//! The file of an export.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::clusters::yaml;

/// A file that gets its name when it is complete. Otherwise it is removed.
#[derive(Debug)]
pub(super) struct ExportFile {
    writer: BufWriter<File>,
    path: PathBuf,
    partial: PathBuf,
    is_complete: bool,
}

// === impl ExportFile ===

impl ExportFile {
    pub(super) fn create(path: &Path, force: bool) -> anyhow::Result<Self> {
        ensure!(force || !path.exists(), "{} exists; add --force to replace it", path.display());
        let mut name = path.file_name().with_context(|| format!("{} is not a file", path.display()))?.to_owned();
        name.push(".partial");
        let partial = path.with_file_name(name);
        let cannot = || format!("cannot create {}", partial.display());
        // A file that an interrupted command has left may have another mode.
        if let Err(error) = fs::remove_file(&partial)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error).with_context(cannot);
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial).with_context(cannot)?;
        Ok(Self { writer: BufWriter::new(file), path: path.to_owned(), partial, is_complete: false })
    }

    /// Adds a document.
    pub(super) fn write(&mut self, document: &Value) -> anyhow::Result<()> {
        let text = yaml::document(document);
        let written = self.writer.write_all(b"---\n").and_then(|()| self.writer.write_all(text.as_bytes()));
        written.with_context(|| format!("cannot write {}", self.partial.display()))
    }

    /// Returns the path.
    pub(super) fn finish(mut self) -> anyhow::Result<PathBuf> {
        let cannot = || format!("cannot write {}", self.path.display());
        self.writer.flush().with_context(cannot)?;
        self.writer.get_ref().sync_all().with_context(cannot)?;
        fs::rename(&self.partial, &self.path).with_context(cannot)?;
        self.is_complete = true;
        Ok(self.path.clone())
    }
}

impl Drop for ExportFile {
    fn drop(&mut self) {
        if !self.is_complete {
            let _ = fs::remove_file(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_complete_file_gets_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.yaml");
        let mut file = ExportFile::create(&path, false).unwrap();
        file.write(&json!({"kind": "x"})).unwrap();
        drop(file);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);

        let mut file = ExportFile::create(&path, false).unwrap();
        file.write(&json!({"kind": "x"})).unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "---\nkind: \"x\"\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(ExportFile::create(&path, false).is_err());
        ExportFile::create(&path, true).unwrap().finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }
}
