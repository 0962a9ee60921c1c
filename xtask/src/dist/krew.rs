//! The manifest of the plugin of kubectl, from `configs/krew/atoll.yaml`.

use anyhow::{Context as _, ensure};

use super::arch::Arch;
use super::version::Version;

/// The name of the template, and of the manifest in a release.
pub(crate) const FILE: &str = "atoll.yaml";

/// The archive of the plugin for one architecture.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    pub(crate) arch: Arch,
    pub(crate) name: String,
    pub(crate) sha256: String,
}

/// Where people find what the manifest names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses<'a> {
    pub(crate) homepage: &'a str,
    /// The URL of the directory with the archives.
    pub(crate) base_url: &'a str,
}

/// Fills in the template. The entry of `platforms` is repeated for each archive.
pub(crate) fn manifest(
    template: &str,
    version: &Version,
    addresses: Addresses<'_>,
    archives: &[Archive],
) -> anyhow::Result<String> {
    let (head, entry) = template.split_once("  platforms:\n").context("the template has no platforms")?;
    let (_, head) = head.split_once("apiVersion:").context("the template has no apiVersion")?;
    let head = head.replace("VERSION", &version.to_string()).replace("HOMEPAGE", addresses.homepage);
    let mut manifest = format!("apiVersion:{head}  platforms:\n");
    for archive in archives {
        let words = [
            ("ARCHIVE", archive.name.as_str()),
            ("ARCH", archive.arch.short()),
            ("BASE_URL", addresses.base_url),
            ("SHA256", &archive.sha256),
        ];
        let mut text = entry.to_owned();
        for (word, value) in words {
            ensure!(text.contains(word), "the template has no {word}");
            text = text.replace(word, value);
        }
        manifest.push_str(&text);
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_manifest_has_every_architecture() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let template = std::fs::read_to_string(root.join("configs/krew").join(FILE)).unwrap();
        let archive =
            |arch, name: &str, sha256: &str| Archive { arch, name: name.to_owned(), sha256: sha256.to_owned() };
        let archives = [archive(Arch::X86_64, "x.tar.gz", "ab"), archive(Arch::Aarch64, "a.tar.gz", "cd")];
        let addresses = Addresses { homepage: "https://example.com/atoll", base_url: "https://example.com/v1" };
        let manifest = manifest(&template, &Version::default(), addresses, &archives).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        for lines in [
            "apiVersion: krew.googlecontainertools.github.com/v1alpha2\nkind: Plugin\n".to_owned(),
            format!("  version: v{version}\n  homepage: https://example.com/atoll\n"),
            "arch: amd64}}\n    uri: https://example.com/v1/x.tar.gz\n    sha256: ab\n".to_owned(),
            "arch: arm64}}\n    uri: https://example.com/v1/a.tar.gz\n    sha256: cd\n".to_owned(),
        ] {
            assert!(manifest.contains(&lines), "{lines}\n{manifest}");
        }
        for word in ["ARCH", "BASE_URL", "HOMEPAGE", "SHA256", "VERSION"] {
            assert!(!manifest.contains(word), "{word}\n{manifest}");
        }
    }
}
