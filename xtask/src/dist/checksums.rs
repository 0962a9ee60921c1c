//! `SHA256SUMS`: the checksums of all files of a release, as `sha256sum --check` reads them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::command::output;

/// The name of the file.
pub(crate) const FILE: &str = "SHA256SUMS";

/// The checksum of a file, in hexadecimal digits.
pub(crate) fn of(file: &Path) -> anyhow::Result<String> {
    let line = output(Command::new("sha256sum").arg("--").arg(file))?;
    // A backslash before the sum says that the name is escaped.
    let sum = line.trim_start_matches('\\').split(' ').next().filter(|sum| sum.len() == 64);
    sum.map(str::to_owned).with_context(|| format!("sha256sum printed {line:?}"))
}

/// Writes the checksums of all files in a directory.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        match entry?.file_name().into_string() {
            Ok(name) if name != FILE => names.push(name),
            Ok(_) => {}
            Err(name) => bail!("{} is not UTF-8", name.display()),
        }
    }
    names.sort_unstable();
    let sums = output(Command::new("sha256sum").current_dir(folder).arg("--").args(&names))?;
    fs::write(folder.join(FILE), sums).with_context(|| format!("cannot write {FILE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_sum() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("b"), "").unwrap();
        fs::write(dir.path().join("a"), "abc").unwrap();
        write(dir.path()).unwrap();
        // The second call does not include the file of the first one.
        write(dir.path()).unwrap();
        let sums = fs::read_to_string(dir.path().join(FILE)).unwrap();
        // FIPS 180-4, and its digest of nothing.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sums, format!("{abc}  a\n{empty}  b\n"));
        assert_eq!(of(&dir.path().join("a")).unwrap(), abc);
    }
}
