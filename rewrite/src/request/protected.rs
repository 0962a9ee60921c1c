//! Labels and annotations of Namespaces that clients may not write.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Keys that give access to the host in every configuration: to devices (`AdminAccess` in resource/v1), and the node
/// selectors and tolerations of the `PodNodeSelector` and `PodTolerationRestriction` plugins.
pub const PROTECTED: [&str; 2] = ["resource.kubernetes.io/admin-access", "scheduler.alpha.kubernetes.io/*"];

/// Keys on which tools of the host's operator rely; the default of the configuration. A tenant that could write them
/// could leave a policy, a project or a quota of the operator.
pub const PROTECTED_BY_DEFAULT: [&str; 10] = [
    // Gatekeeper: `admission.gatekeeper.sh/ignore` exempts a namespace.
    "admission.gatekeeper.sh/*",
    // Kyverno.
    "kyverno.io/*",
    "*.kyverno.io/*",
    // Rancher: `field.cattle.io/projectId` puts a namespace into a project.
    "cattle.io/*",
    "*.cattle.io/*",
    // Capsule: `capsule.clastix.io/tenant` gives a namespace to a tenant.
    "capsule.clastix.io/*",
    "projectcapsule.dev/*",
    "*.projectcapsule.dev/*",
    // OpenShift: on which nodes pods run, and as whom.
    "openshift.io/node-selector",
    "openshift.io/sa.scc.*",
];

/// Which keys are protected. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedKeys(Arc<[KeyPattern]>);

/// A key, or a part of one with `*` for any text before or after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPattern {
    /// `KEY`
    Exact(String),
    /// `TEXT*`
    Prefix(String),
    /// `*TEXT`
    Suffix(String),
    /// `*TEXT*`
    Part(String),
}

/// The text is not a pattern of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the key of a label or annotation (one `*` is allowed at the beginning, and one at the end)")]
pub struct NotAPattern;

// === impl ProtectedKeys ===

impl ProtectedKeys {
    /// These patterns, and the keys that are always protected.
    pub fn new(patterns: impl IntoIterator<Item = KeyPattern>) -> Self {
        let always = PROTECTED.map(|pattern| pattern.parse().expect("a constant pattern"));
        Self(always.into_iter().chain(patterns).collect())
    }

    /// Whether a key is protected.
    pub fn matches(&self, key: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(key))
    }

    /// All patterns, to translate them to another language.
    pub fn patterns(&self) -> impl Iterator<Item = &KeyPattern> {
        self.0.iter()
    }
}

impl Default for ProtectedKeys {
    fn default() -> Self {
        Self::new(PROTECTED_BY_DEFAULT.map(|pattern| pattern.parse().expect("a constant pattern")))
    }
}

// === impl KeyPattern ===

impl KeyPattern {
    fn matches(&self, key: &str) -> bool {
        match self {
            Self::Exact(text) => key == text,
            Self::Prefix(text) => key.starts_with(text.as_str()),
            Self::Suffix(text) => key.ends_with(text.as_str()),
            Self::Part(text) => key.contains(text.as_str()),
        }
    }
}

impl FromStr for KeyPattern {
    type Err = NotAPattern;
    fn from_str(pattern: &str) -> Result<Self, NotAPattern> {
        let is_part_of_key = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
        let (text, begins) = pattern.strip_prefix('*').map_or((pattern, false), |rest| (rest, true));
        let (text, ends) = text.strip_suffix('*').map_or((text, false), |rest| (rest, true));
        if text.is_empty() || !text.chars().all(is_part_of_key) {
            return Err(NotAPattern);
        }
        let text = text.to_owned();
        Ok(match (begins, ends) {
            (false, false) => Self::Exact(text),
            (false, true) => Self::Prefix(text),
            (true, false) => Self::Suffix(text),
            (true, true) => Self::Part(text),
        })
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => f.write_str(text),
            Self::Prefix(text) => write!(f, "{text}*"),
            Self::Suffix(text) => write!(f, "*{text}"),
            Self::Part(text) => write!(f, "*{text}*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_operators_tools_are_protected() {
        let keys = ProtectedKeys::default();
        for key in [
            "resource.kubernetes.io/admin-access",
            "scheduler.alpha.kubernetes.io/node-selector",
            "admission.gatekeeper.sh/ignore",
            "policies.kyverno.io/exclude",
            "field.cattle.io/projectId",
            "capsule.clastix.io/tenant",
            "openshift.io/sa.scc.uid-range",
        ] {
            assert!(keys.matches(key), "{key}");
        }
        for key in
            ["app", "pod-security.kubernetes.io/enforce", "openshift.io/display-name", "notcattle.io/x", "kyverno.io"]
        {
            assert!(!keys.matches(key), "{key}");
        }
        let own = ProtectedKeys::new(["example.com/*".parse().unwrap()]);
        assert!(own.matches("example.com/a") && own.matches("resource.kubernetes.io/admin-access"));
        assert!(!own.matches("field.cattle.io/projectId"));
    }

    #[test]
    fn patterns_are_read_and_written() {
        for pattern in ["a", "a/*", "*.b/c", "*.b/*"] {
            assert_eq!(pattern.parse::<KeyPattern>().unwrap().to_string(), pattern);
        }
        for bad in ["", "*", "**", "a*b", "a b", "**a", "\u{e9}"] {
            assert_eq!(bad.parse::<KeyPattern>(), Err(NotAPattern), "{bad}");
        }
    }
}
