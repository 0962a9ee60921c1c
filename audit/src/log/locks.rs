//! The locks of log files: only one process writes to a file.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The files that this process has locked, by path. Clones are the same. After a reload, the logs of the old and of the new
/// settings can be open at a time, and share the file with its lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks(Arc<Mutex<HashMap<PathBuf, Weak<File>>>>);

// === impl Locks ===

impl Locks {
    /// Locks a file that has been opened by this path, or returns it as it has been locked before. Dropping it unlocks it.
    pub(super) fn lock(&self, path: &Path, file: File) -> io::Result<Arc<File>> {
        let mut locked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        locked.retain(|_, file| file.strong_count() > 0);
        if let Some(before) = locked.get(path).and_then(Weak::upgrade)
            && is_same(&before, &file)?
        {
            return Ok(before);
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = "another process, or another path in this configuration, writes to this file";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let file = Arc::new(file);
        locked.insert(path.to_owned(), Arc::downgrade(&file));
        Ok(file)
    }
}

fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}
