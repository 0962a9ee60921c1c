//! The version in the names of files, in packages and in images.

use std::fmt;
use std::str::FromStr;

use anyhow::ensure;

/// The version of the workspace, which all binaries report.
const WORKSPACE: &str = env!("CARGO_PKG_VERSION");

/// The version of the workspace, or a pre-release of it: `0.1.0-rc.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version(String);

// === impl Version ===

impl Version {
    /// The form of Debian, in which a pre-release is older than its release: `0.1.0~rc.1` (deb-version(7)).
    pub(crate) fn debian(&self) -> String {
        self.0.replacen('-', "~", 1)
    }
}

impl Default for Version {
    fn default() -> Self {
        Self(WORKSPACE.to_owned())
    }
}

impl FromStr for Version {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let suffix = text.strip_prefix(WORKSPACE);
        let is_suffix = |suffix: &str| {
            suffix.is_empty()
                || suffix.strip_prefix('-').is_some_and(|name| {
                    !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '.')
                })
        };
        ensure!(
            suffix.is_some_and(is_suffix),
            "{text} is neither {WORKSPACE}, which the binaries report, nor a pre-release of it, such as \
             {WORKSPACE}-rc.1"
        );
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_that_of_the_binaries_or_a_pre_release() {
        let parsed = |suffix: &str| format!("{WORKSPACE}{suffix}").parse::<Version>();
        assert_eq!(parsed("").unwrap(), Version::default());
        assert_eq!(parsed("-rc.1").unwrap().to_string(), format!("{WORKSPACE}-rc.1"));
        assert_eq!(parsed("-rc.1").unwrap().debian(), format!("{WORKSPACE}~rc.1"));
        // `+` cannot be in the tag of an image, and `-` separates the revision of a Debian package.
        for invalid in ["1", "-", "+1", "-rc-1", "-a/b", "-a b"] {
            assert!(parsed(invalid).is_err(), "{invalid}");
        }
        assert!("99.0.0".parse::<Version>().unwrap_err().to_string().contains(WORKSPACE));
    }
}
