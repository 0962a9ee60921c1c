//! The lock of a directory whose files several processes change.

use std::fs::File;
use std::io;
use std::path::Path;

/// The name of the lock file of a directory.
pub const LOCK: &str = ".lock";

/// Waits until no other process holds the lock of a directory, and takes it. Dropping the file unlocks it.
pub fn lock(directory: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(directory.join(LOCK))?;
    file.lock()?;
    Ok(file)
}
