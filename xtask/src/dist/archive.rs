//! Archives whose bytes depend only on their content: sorted, with one time, and owned by root.

use std::path::Path;
use std::process::Command;

use super::command::run;

/// Writes the directory or file `name` in `folder` to an archive. `.` stands for all that is in the folder.
pub(crate) fn write(archive: &Path, folder: &Path, names: &[&str], epoch: u64) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--owner=root:0", "--group=root:0"]);
    tar.arg(format!("--mtime=@{epoch}"));
    // Without the name and the time of the archive itself.
    tar.arg("--use-compress-program=gzip -9 --no-name");
    tar.arg("--file").arg(archive).arg("--directory").arg(folder).args(names);
    run(&mut tar)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::command::output;
    use super::super::tree::{Mode, Tree};
    use super::*;

    fn archive_of(order: [&str; 2]) -> (Vec<u8>, String) {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::create(dir.path().join("tree")).unwrap();
        for name in order {
            tree.write(name, name, if name.starts_with("bin") { Mode::Program } else { Mode::Data }).unwrap();
        }
        let file = dir.path().join("a.tar.gz");
        write(&file, dir.path(), &["tree"], 1_700_000_000).unwrap();
        let listed =
            output(Command::new("tar").env("TZ", "UTC").args(["--list", "--verbose", "--file"]).arg(&file)).unwrap();
        (fs::read(&file).unwrap(), listed)
    }

    #[test]
    fn the_same_files_are_the_same_bytes() {
        let (first, listed) = archive_of(["bin/b", "a"]);
        // The order in which the files were created does not matter.
        assert!(first == archive_of(["a", "bin/b"]).0);
        let fields: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
        let column = |at: usize| fields.iter().map(|line| line[at]).collect::<Vec<_>>();
        assert_eq!(column(0), ["drwxr-xr-x", "-rw-r--r--", "drwxr-xr-x", "-rwxr-xr-x"]);
        assert_eq!(column(1), ["root/root"; 4]);
        assert_eq!(column(3), ["2023-11-14"; 4]);
        assert_eq!(column(5), ["tree/", "tree/a", "tree/bin/", "tree/bin/b"]);
    }
}
