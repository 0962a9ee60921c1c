use std::fs;
use std::path::Path;
use std::process::Command;
use std::str::Utf8Error;

use super::*;

fn text([content]: [&[u8]; 1]) -> Result<String, Utf8Error> {
    str::from_utf8(content).map(str::to_owned)
}

fn reloader() -> Reloader {
    Reloader::new(Duration::from_secs(5))
}

/// What the kubelet does with a mounted Secret: the data directory is a link that is exchanged by a rename.
fn swap_link(dir: &Path, version: &str) {
    std::os::unix::fs::symlink(version, dir.join("..data_tmp")).unwrap();
    fs::rename(dir.join("..data_tmp"), dir.join("..data")).unwrap();
}

#[test]
fn only_changed_content_is_reloaded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "one").unwrap();
    let reloader = reloader();
    let token = reloader.watch([path.clone()], text).unwrap();
    assert_eq!(*token.borrow(), "one");

    fs::write(&path, "one").unwrap();
    reloader.reload();
    assert_eq!(reloader.counts(), Counts::default());

    let held = token.borrow();
    fs::write(&path, "two").unwrap();
    reloader.reload();
    assert_eq!((held.as_str(), token.borrow().as_str()), ("one", "two"));
    assert_eq!(reloader.counts(), Counts { reloaded: 1, failed: 0 });
}

#[test]
fn a_mounted_secret_is_followed_through_its_links() {
    let dir = tempfile::tempdir().unwrap();
    for (version, content) in [("v1", "old"), ("v2", "new")] {
        fs::create_dir(dir.path().join(version)).unwrap();
        fs::write(dir.path().join(version).join("tls.crt"), content).unwrap();
    }
    swap_link(dir.path(), "v1");
    std::os::unix::fs::symlink("..data/tls.crt", dir.path().join("tls.crt")).unwrap();
    let reloader = reloader();
    let watched = reloader.watch([dir.path().join("tls.crt")], text).unwrap();

    swap_link(dir.path(), "v2");
    reloader.reload();
    assert_eq!(*watched.borrow(), "new");
}

#[test]
fn a_failed_reload_keeps_the_old_value_and_is_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "good").unwrap();
    let reloader = reloader();
    let token = reloader.watch([path.clone()], text).unwrap();

    fs::write(&path, [0xff]).unwrap();
    reloader.reload();
    reloader.reload();
    assert_eq!(reloader.counts(), Counts { reloaded: 0, failed: 1 });
    assert_eq!(*token.borrow(), "good");

    fs::remove_file(&path).unwrap();
    reloader.reload();
    reloader.reload();
    assert_eq!(reloader.counts(), Counts { reloaded: 0, failed: 2 });

    fs::write(&path, "good").unwrap();
    reloader.reload();
    assert_eq!(reloader.counts(), Counts { reloaded: 1, failed: 2 });
}

#[test]
fn several_files_are_parsed_together() {
    let dir = tempfile::tempdir().unwrap();
    let (left, right) = (dir.path().join("left"), dir.path().join("right"));
    fs::write(&left, "ab").unwrap();
    fs::write(&right, "c").unwrap();
    let reloader = reloader();
    let pair = |[left, right]: [&[u8]; 2]| {
        Ok::<_, Utf8Error>((str::from_utf8(left)?.to_owned(), str::from_utf8(right)?.to_owned()))
    };
    let watched = reloader.watch([left.clone(), right.clone()], pair).unwrap();

    // The concatenation is the same.
    fs::write(&left, "a").unwrap();
    fs::write(&right, "bc").unwrap();
    reloader.reload();
    assert_eq!(*watched.borrow(), ("a".to_owned(), "bc".to_owned()));
}

#[test]
fn a_first_load_that_fails_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("missing");
    let error = reloader().watch([path.clone()], text).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");

    let file = fs::File::create(&path).unwrap();
    file.set_len(crate::files::MAX_FILE_BYTES + 1).unwrap();
    assert!(matches!(reloader().watch([path], text), Err(LoadError::TooLarge { .. })));
}

#[test]
fn files_without_holders_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "x").unwrap();
    let reloader = reloader();
    let token = reloader.watch([path], text).unwrap();
    assert_eq!(reloader.watched(), 1);
    drop(token);
    reloader.reload();
    assert_eq!(reloader.sources().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn files_are_read_again_after_the_period() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "one").unwrap();
    let reloader = reloader();
    let token = reloader.watch([path.clone()], text).unwrap();
    let mut changes = token.changes();
    fs::write(&path, "two").unwrap();

    let start = Instant::now();
    tokio::select! {
        () = reloader.run() => unreachable!("runs forever"),
        told = changes.changed() => assert!(told),
    }
    assert_eq!(*token.borrow(), "two");
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

#[tokio::test]
async fn sighup_reloads_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "one").unwrap();
    let reloader = Reloader::new(Duration::from_secs(24 * 3600));
    let token = reloader.watch([path.clone()], text).unwrap();
    let mut changes = token.changes();
    fs::write(&path, "two").unwrap();

    tokio::select! {
        biased; // the first poll of `run` catches the signal, which would end the process otherwise
        () = reloader.run() => unreachable!("runs forever"),
        told = async {
            let kill = format!("kill -HUP {}", std::process::id());
            assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
            changes.changed().await
        } => assert!(told),
    }
    assert_eq!(*token.borrow(), "two");
}
