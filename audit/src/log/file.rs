//! A file that is rotated by its size: it gets the time in its name, as with kube-apiserver (the Go package lumberjack).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ops::date::DAY;

use crate::config;
use crate::event::MicroTime;
use crate::log::locks::Locks;

/// The most that is written at once, in bytes. It is a copy of events.
const AT_ONCE: usize = 1024 * 1024;

/// A log file that is open.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    locks: Locks,
    file: Arc<File>,
    size: u64,
    /// Whether a line may be incomplete.
    is_torn: bool,
    max_size: u64,
    max_backups: u32,
    max_age: u32,
    clock: fn() -> SystemTime,
}

// === impl LogFile ===

impl LogFile {
    /// Opens a file, and creates it and its directory if they do not exist.
    pub(super) fn open(settings: &config::Log, locks: &Locks) -> io::Result<Self> {
        let path = settings.path.to_path_buf();
        let (file, size) = open(&path, locks)?;
        Ok(Self {
            path,
            locks: locks.clone(),
            file,
            size,
            is_torn: false,
            max_size: u64::from(settings.max_size.get()) * 1024 * 1024,
            max_backups: settings.max_backups,
            max_age: settings.max_age,
            clock: SystemTime::now,
        })
    }

    /// Writes lines. Returns how many could not be written, and why. The file then ends with a whole line.
    pub(super) fn write(&mut self, lines: &[impl AsRef<[u8]>]) -> Option<(usize, io::Error)> {
        let mut rest = lines;
        while !rest.is_empty() {
            let result = self.prepare(rest[0].as_ref()).and_then(|()| self.append(rest));
            match result {
                Ok(written) => rest = &rest[written..],
                Err(error) => return Some((rest.len(), error)),
            }
        }
        None
    }

    /// Makes room for a line.
    fn prepare(&mut self, line: &[u8]) -> io::Result<()> {
        // Somebody else may have moved the file.
        let (open, named) = (self.file.metadata()?, fs::metadata(&self.path));
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino())) {
            // Somebody else may have shortened it.
            self.size = open.len();
        } else {
            self.reopen()?;
        }
        if self.size > 0 && self.size + line.len() as u64 > self.max_size { self.rotate() } else { Ok(()) }
    }

    /// Appends as many lines as fit, at least one. Returns their number.
    fn append(&mut self, lines: &[impl AsRef<[u8]>]) -> io::Result<usize> {
        let (mut text, mut appended) = (Vec::new(), 0);
        if self.is_torn {
            text.push(b'\n');
        }
        for line in lines.iter().map(AsRef::as_ref) {
            let size = self.size + (text.len() + line.len()) as u64;
            if appended > 0 && (size > self.max_size || text.len() >= AT_ONCE) {
                break;
            }
            text.extend_from_slice(line);
            appended += 1;
        }
        let mut written = 0;
        while written < text.len() {
            match (&*self.file).write(&text[written..]) {
                Ok(0) => return Err(self.cut(written, io::ErrorKind::WriteZero.into())),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.cut(written, error)),
            }
        }
        (self.size, self.is_torn) = (self.size + text.len() as u64, false);
        Ok(appended)
    }

    /// Removes bytes of which only a part could be written: the disk may be full in the middle of a line. If somebody else has
    /// changed the file, its lines stay, and the next one begins on a line of its own.
    fn cut(&mut self, written: usize, error: io::Error) -> io::Error {
        let end = self.size + written as u64;
        let is_ours = self.file.metadata().is_ok_and(|metadata| metadata.len() == end);
        if written > 0 && !(is_ours && self.file.set_len(self.size).is_ok()) {
            self.is_torn = true;
        }
        error
    }

    fn rotate(&mut self) -> io::Result<()> {
        let now = (self.clock)();
        fs::rename(&self.path, self.backup(now))?;
        self.reopen()?;
        self.clean_up(now)
    }

    fn reopen(&mut self) -> io::Result<()> {
        (self.file, self.size) = open(&self.path, &self.locks)?;
        self.is_torn = false;
        Ok(())
    }

    /// A name for the file that does not exist yet.
    fn backup(&self, now: SystemTime) -> PathBuf {
        let (stem, extension) = self.affixes();
        let mut at = now;
        loop {
            let backup = self.path.with_file_name(format!("{stem}{}{extension}", stamp(at)));
            if !backup.exists() {
                return backup;
            }
            at += std::time::Duration::from_millis(1);
        }
    }

    /// Removes backups that are too many or too old.
    fn clean_up(&self, now: SystemTime) -> io::Result<()> {
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (stem, extension) = self.affixes();
        let mut backups = Vec::new();
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let time = name.strip_prefix(&stem).and_then(|rest| rest.strip_suffix(&extension));
            if let Some(time) = time.filter(|time| is_stamp(time)) {
                backups.push(time.to_owned());
            }
        }
        // The names sort like the times.
        backups.sort_unstable_by(|a, b| b.cmp(a));
        let kept = if self.max_backups == 0 { usize::MAX } else { self.max_backups as usize };
        let age = (self.max_age > 0).then(|| now.checked_sub(DAY * self.max_age)).flatten().map(stamp);
        for (index, time) in backups.iter().enumerate() {
            if index >= kept || age.as_ref().is_some_and(|age| time < age) {
                fs::remove_file(self.path.with_file_name(format!("{stem}{time}{extension}")))?;
            }
        }
        Ok(())
    }

    /// What comes before and after the time in the name of a backup.
    fn affixes(&self) -> (String, String) {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let extension = self.path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
        (format!("{}-", text(self.path.file_stem())), extension.unwrap_or_default())
    }
}

/// Opens a file for appending, and returns its size. Only the user of this process may read it.
fn open(path: &Path, locks: &Locks) -> io::Result<(Arc<File>, u64)> {
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let file = locks.lock(path, file)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// `2026-05-01T12-00-00.123`.
fn stamp(time: SystemTime) -> String {
    let mut text = MicroTime(time).to_string().replace(':', "-");
    text.truncate(23);
    text
}

fn is_stamp(text: &str) -> bool {
    let form = text.chars().map(|char| if char.is_ascii_digit() { '0' } else { char });
    form.eq("0000-00-00T00-00-00.000".chars())
}

#[cfg(test)]
mod tests;
