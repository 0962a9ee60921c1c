//! Writes files atomically, so that nobody reads a partial one.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What to do if the file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it and fail: overwriting a certificate authority locks everybody out.
    Refuse,
    /// Replace it.
    Replace,
}

/// Who may read the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// Everybody (mode 0644).
    Public,
    /// The owner alone (mode 0600).
    Secret,
}

/// The file was not written. An existing file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file exists, and [`Existing::Refuse`] was given.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The file system refused.
    #[error("cannot write {}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Writes a file: writes the bytes to the disk under a temporary name in the same directory, then gives the file its
/// name, or replaces the old one. Creates missing directories.
pub fn write(path: &Path, bytes: &[u8], secrecy: Secrecy, existing: Existing) -> Result<(), WriteError> {
    publish(path, bytes, secrecy, existing).map_err(|source| {
        if source.kind() == io::ErrorKind::AlreadyExists && existing == Existing::Refuse {
            WriteError::Exists(path.to_owned())
        } else {
            WriteError::Io { path: path.to_owned(), source }
        }
    })
}

fn publish(path: &Path, bytes: &[u8], secrecy: Secrecy, existing: Existing) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = directory.join(temporary);

    let result = create(&temporary, bytes, secrecy).and_then(|()| match existing {
        Existing::Replace => fs::rename(&temporary, path),
        // Unlike a rename, a link never replaces an existing file, so there is no race between checking and writing.
        Existing::Refuse => fs::hard_link(&temporary, path).and_then(|()| fs::remove_file(&temporary)),
    });
    if result.is_err() {
        // The first error matters, and the file may not exist.
        let _ = fs::remove_file(&temporary);
    }
    result?;
    // The name is durable once its directory is.
    File::open(directory)?.sync_all()
}

fn create(path: &Path, bytes: &[u8], secrecy: Secrecy) -> io::Result<()> {
    let mode = match secrecy {
        Secrecy::Public => 0o644,
        Secrecy::Secret => 0o600,
    };
    // Left by a process with the same id that was killed; its mode could be anything.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_secret_that_replaces_a_public_file_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/ca.key");
        write(&path, b"one", Secrecy::Public, Existing::Refuse).unwrap();
        write(&path, b"two", Secrecy::Secret, Existing::Replace).unwrap();
        assert_eq!((fs::read(&path).unwrap().as_slice(), mode(&path)), (b"two".as_slice(), 0o600));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn existing_files_are_not_overwritten_by_default() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.key");
        write(&path, b"precious", Secrecy::Secret, Existing::Refuse).unwrap();
        let error = write(&path, b"new", Secrecy::Secret, Existing::Refuse).unwrap_err();
        assert!(matches!(error, WriteError::Exists(_)), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn errors_of_the_file_system_name_the_file() {
        let error = write(Path::new("/proc/nowhere/x"), b"", Secrecy::Public, Existing::Replace).unwrap_err();
        assert!(error.to_string().contains("/proc/nowhere/x"), "{error}");
    }
}
