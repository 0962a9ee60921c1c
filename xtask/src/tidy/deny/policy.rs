//! deny.toml as data, with the lines that things stand in.

use std::fmt;

use anyhow::Context as _;
use semver::{Comparator, Op, Version, VersionReq};
use serde::{Deserialize, de};
use toml::Spanned;

use crate::tidy::finding::{line_at, line_of};
use crate::tidy::graph::Package;

/// What we may be built from.
#[derive(Debug)]
pub(crate) struct Policy {
    text: String,
    tables: Tables,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    graph: GraphTable,
    bans: Bans,
    licenses: Licenses,
    sources: Sources,
    /// Only cargo-deny can check these.
    #[serde(default, rename = "advisories")]
    _advisories: toml::Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphTable {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bans {
    pub(super) deny: Vec<Named>,
    pub(super) skip: Vec<Spanned<Named>>,
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Level,
    #[serde(rename = "wildcards")]
    _wildcards: Level,
    /// The paths between our own crates carry no version.
    #[serde(rename = "allow-wildcard-paths")]
    _allow_wildcard_paths: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Licenses {
    pub(super) allow: Vec<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sources {
    #[serde(rename = "allow-registry")]
    pub(super) allow_registry: Vec<String>,
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Level,
    #[serde(rename = "unknown-git")]
    _unknown_git: Level,
}

/// A level of cargo-deny. Only one is accepted: a warning is a rule that nobody keeps.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Deny,
}

/// A crate, and why it stands here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    #[serde(rename = "crate")]
    pub(super) spec: Spec,
    pub(super) reason: String,
}

/// cargo-deny's way to name a package: `name`, `name@1.2.3` for one version, `name:REQUIREMENT` for some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    name: String,
    versions: VersionReq,
}

// === impl Policy ===

impl Policy {
    /// Reads the text of deny.toml.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let tables = toml::from_str(text).context("deny.toml")?;
        Ok(Self { text: text.to_owned(), tables })
    }

    /// The platforms that are asked about, as rustc names them.
    pub(crate) fn targets(&self) -> &[String] {
        &self.tables.graph.targets
    }

    pub(super) fn bans(&self) -> &Bans {
        &self.tables.bans
    }

    pub(super) fn licenses(&self) -> &Licenses {
        &self.tables.licenses
    }

    pub(super) fn sources(&self) -> &Sources {
        &self.tables.sources
    }

    /// The line of an entry.
    pub(super) fn line<T>(&self, entry: &Spanned<T>) -> usize {
        line_at(&self.text, entry.span().start)
    }

    /// The line where the list of skipped duplicates begins.
    pub(super) fn skip_line(&self) -> usize {
        line_of(&self.text, "skip")
    }
}

// === impl Spec ===

impl Spec {
    pub(super) fn matches(&self, package: &Package) -> bool {
        package.name == self.name && self.versions.matches(&package.version)
    }
}

impl std::str::FromStr for Spec {
    type Err = semver::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, versions) = if let Some((name, version)) = text.split_once('@') {
            (name, exactly(&version.parse()?))
        } else if let Some((name, requirement)) = text.split_once(':') {
            (name, requirement.parse()?)
        } else {
            (text, VersionReq::STAR)
        };
        Ok(Self { name: name.to_owned(), versions })
    }
}

fn exactly(version: &Version) -> VersionReq {
    let comparator = Comparator {
        op: Op::Exact,
        major: version.major,
        minor: Some(version.minor),
        patch: Some(version.patch),
        pre: version.pre.clone(),
    };
    VersionReq { comparators: vec![comparator] }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.versions == VersionReq::STAR {
            return f.write_str(&self.name);
        }
        write!(f, "{}:{}", self.name, self.versions)
    }
}
