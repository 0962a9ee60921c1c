//! The licences of all libraries that are linked into the programs, as most of these licences require.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::component::Component;

/// How the names of files with a licence begin, in upper case.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// A list of the libraries, and the text of each licence once.
pub(crate) fn text(components: &[Component]) -> anyhow::Result<String> {
    let mut text =
        "The programs of Atoll contain the following libraries. The texts of their licences follow.\n\n".to_owned();
    let mut licenses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for component in components.iter().filter(|component| !component.is_ours()) {
        let name = format!("{} {}", component.name, component.version);
        writeln!(text, "  {name}: {}", component.license.as_deref().unwrap_or("see below"))?;
        for file in component.folder.iter().flat_map(|folder| files(folder)) {
            let license = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let license = String::from_utf8_lossy(&license).replace("\r\n", "\n").trim_end().to_owned();
            let users = licenses.entry(license).or_default();
            if users.last() != Some(&name) {
                users.push(name.clone());
            }
        }
    }
    let mut licenses: Vec<_> = licenses.into_iter().collect();
    licenses.sort_by(|(_, one), (_, other)| one.cmp(other));
    for (license, users) in licenses {
        write!(text, "\n{}\n{}:\n\n{license}\n", "=".repeat(80), users.join(", "))?;
    }
    Ok(text)
}

/// The files with a licence in a directory. Crates of C libraries have them in directories below.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        let mut paths: Vec<_> =
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort_unstable();
        paths
    };
    let below = entries(folder).into_iter().filter(|path| path.is_dir()).flat_map(|folder| entries(&folder));
    entries(folder).into_iter().chain(below).filter(|path| path.is_file() && is_license(path)).collect()
}

fn is_license(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    NAMES.iter().any(|start| name.starts_with(start)) && path.extension().is_none_or(|extension| extension != "rs")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn equal_licenses_are_printed_once() {
        let dir = tempfile::tempdir().unwrap();
        let component = |name: &str, files: &[(&str, &str)], purl: bool| {
            for (file, text) in files {
                let path = dir.path().join(name).join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Component {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                license: Some("MIT".to_owned()),
                purl: purl.then(String::new),
                checksum: None,
                folder: Some(dir.path().join(name)),
                uses: BTreeSet::new(),
            }
        };
        let components = [
            component("a", &[("LICENSE-MIT", "Free.\n"), ("license.rs", "code")], true),
            component("b", &[("COPYING", "Free.\r\n"), ("c-library/LICENSE.txt", "Also free.")], true),
            component("ours", &[("LICENSE", "Ours.")], false),
        ];
        let text = text(&components).unwrap();
        let line = "=".repeat(80);
        let end = format!("\n{line}\na 1.0.0, b 1.0.0:\n\nFree.\n\n{line}\nb 1.0.0:\n\nAlso free.\n");
        assert!(text.ends_with(&end) && text.contains("\n  a 1.0.0: MIT\n  b 1.0.0: MIT\n"), "{text}");
        assert!(!text.contains("code") && !text.contains("Ours"), "{text}");
    }
}
