//! The checksums in `Cargo.lock`.

use std::collections::HashMap;

/// The checksums of packages, by name and version. Our own packages have none.
pub(super) fn checksums(lock: &str) -> HashMap<(&str, &str), &str> {
    // Cargo writes one key per line, in this form.
    let package = |text| {
        let value = |key: &str| {
            lines_of(text).find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    lock.split("[[package]]").filter_map(package).collect()
}

fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_registry_have_checksums() {
        let lock = "version = 4\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\ndependencies = [\n \"x\",\n]\n\n\
                    [[package]]\nname = \"theirs\"\nversion = \"1.2.3+x\"\nsource = \"r\"\nchecksum = \"ab\"\n";
        assert_eq!(checksums(lock), HashMap::from([(("theirs", "1.2.3+x"), "ab")]));
    }
}
