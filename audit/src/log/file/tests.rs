use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

/// 2026-05-01T12:00:00Z.
fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_777_636_800)
}

/// A file that is rotated at ten bytes.
fn log(directory: &TempDir, max_backups: u32, max_age: u32) -> LogFile {
    with_locks(directory, max_backups, max_age, &Locks::default()).unwrap()
}

fn with_locks(directory: &TempDir, max_backups: u32, max_age: u32, locks: &Locks) -> io::Result<LogFile> {
    let path = directory.path().join("new/audit.log").into();
    let settings = config::Log { path, max_size: NonZeroU32::MIN, max_backups, max_age };
    Ok(LogFile { max_size: 10, clock: noon, ..LogFile::open(&settings, locks)? })
}

/// The names of the files, and their contents.
fn files(directory: &TempDir) -> Vec<(String, String)> {
    let entries = fs::read_dir(directory.path().join("new")).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn lines(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| format!("{text}\n")).collect()
}

#[test]
fn a_file_is_rotated_before_it_is_too_large() {
    let directory = TempDir::new().unwrap();
    let mut log = log(&directory, 0, 0);
    assert!(log.write(&lines(&["one", "two", "three", "a line that is too long", "four"])).is_none());
    let expected = [
        ("audit-2026-05-01T12-00-00.000.log", "one\ntwo\n"),
        ("audit-2026-05-01T12-00-00.001.log", "three\n"),
        ("audit-2026-05-01T12-00-00.002.log", "a line that is too long\n"),
        ("audit.log", "four\n"),
    ];
    assert_eq!(files(&directory), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    let mode = |name| fs::metadata(directory.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("new/audit.log"), mode("new")), (0o600, 0o700));
    // Another process continues the file.
    drop(log);
    let mut log = self::log(&directory, 0, 0);
    assert!(log.write(&lines(&["five", "six"])).is_none());
    assert_eq!(files(&directory)[3].1, "four\nfive\n");
}

#[test]
fn old_backups_are_removed() {
    let directory = TempDir::new().unwrap();
    let mut log = log(&directory, 2, 7);
    let new = |name: &str| fs::write(directory.path().join("new").join(name), "").unwrap();
    // Too old, too many, not a backup, not ours.
    new("audit-2026-04-20T12-00-00.000.log");
    new("audit-2026-04-28T12-00-00.000.log");
    new("audit-2026-04-29T12-00-00.000.log");
    new("audit-notes.log");
    new("other-2026-04-20T12-00-00.000.log");
    assert!(log.write(&lines(&["123456789", "2"])).is_none());
    let names: Vec<_> = files(&directory).into_iter().map(|(name, _)| name).collect();
    let expected = [
        "audit-2026-04-29T12-00-00.000.log",
        "audit-2026-05-01T12-00-00.000.log",
        "audit-notes.log",
        "audit.log",
        "other-2026-04-20T12-00-00.000.log",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_file_that_somebody_has_moved_is_created_again() {
    let directory = TempDir::new().unwrap();
    let mut log = log(&directory, 0, 0);
    assert!(log.write(&lines(&["1"])).is_none());
    let path = directory.path().join("new/audit.log");
    fs::rename(&path, directory.path().join("new/moved")).unwrap();
    assert!(log.write(&lines(&["2"])).is_none());
    assert_eq!(fs::read_to_string(path).unwrap(), "2\n");
}

#[test]
fn what_cannot_be_written_is_reported_and_leaves_whole_lines() {
    let directory = TempDir::new().unwrap();
    let mut log = log(&directory, 0, 0);
    assert!(log.write(&lines(&["1"])).is_none());
    // Like a disk that is full: nothing can be written to this file.
    let writable =
        std::mem::replace(&mut log.file, Arc::new(File::open(directory.path().join("new/audit.log")).unwrap()));
    let (lost, _) = log.write(&lines(&["2", "3"])).unwrap();
    assert_eq!(lost, 2);
    log.file = writable;
    assert!(log.write(&lines(&["4"])).is_none());
    assert_eq!(files(&directory)[0].1, "1\n4\n");
}

#[test]
fn only_bytes_of_this_process_are_cut() {
    let directory = TempDir::new().unwrap();
    let mut log = log(&directory, 0, 0);
    let error = || io::Error::from(io::ErrorKind::StorageFull);
    let text = |directory: &TempDir| files(directory)[0].1.clone();
    assert!(log.write(&lines(&["1"])).is_none());
    (&*log.file).write_all(b"2").unwrap();
    let _ = log.cut(1, error());
    assert_eq!(text(&directory), "1\n");
    // Somebody else has written, too.
    (&*log.file).write_all(b"3x\n").unwrap();
    let _ = log.cut(1, error());
    assert!(log.write(&lines(&["4"])).is_none());
    assert_eq!(text(&directory), "1\n3x\n\n4\n");
    // Somebody else has copied the lines, and emptied the file.
    log.file.set_len(0).unwrap();
    (&*log.file).write_all(b"5").unwrap();
    let _ = log.cut(1, error());
    assert!(log.write(&lines(&["6"])).is_none());
    assert_eq!(text(&directory), "5\n6\n");
}

#[test]
fn only_one_process_writes() {
    let directory = TempDir::new().unwrap();
    let locks = Locks::default();
    let mut first = with_locks(&directory, 0, 0, &locks).unwrap();
    // After a reload, this process has the file twice.
    let mut second = with_locks(&directory, 0, 0, &locks).unwrap();
    let of_another_process = || with_locks(&directory, 0, 0, &Locks::default());
    let error = of_another_process().unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    // Also after a rotation by either.
    assert!(first.write(&lines(&["123456789", "2"])).is_none());
    assert!(of_another_process().is_err());
    assert!(second.write(&lines(&["3"])).is_none());
    assert_eq!(files(&directory).pop().unwrap().1, "2\n3\n");
    drop(first);
    assert!(of_another_process().is_err());
    drop(second);
    assert!(of_another_process().is_ok());
}
