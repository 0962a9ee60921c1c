//! Pod Security (`pod-security.kubernetes.io`), if the operator of the host enforces a level in a virtual cluster.
//!
//! The host enforces the stricter of that level and the one that a client requests. The labels of clients are
//! [parked](crate::parked): keys are renamed one to one, so the host itself processes them in patches, applies and
//! managed fields. The labels that the host acts on belong to the agent, and clients never see them.
//!
//! What is *not* here: virtual clusters without an enforced level, whose labels pass unchanged.

use std::fmt;
use std::str::FromStr;

use crate::parked::{parked, unparked};

/// The label with the level that the host enforces (`EnforceLevelLabel` in pod-security-admission's `api/constants.go`).
pub const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
/// The label with the Kubernetes version of that level (`EnforceVersionLabel`, ibidem).
pub const ENFORCE_VERSION: &str = "pod-security.kubernetes.io/enforce-version";
/// The label of a host namespace with the level that the configuration enforces there. If it is set, [`ENFORCE`] and
/// [`ENFORCE_VERSION`] belong to the agent, and those of the client are parked.
pub const MARK: &str = "atoll.dev/pod-security";
/// Older versions of a level check less, so the version is never pinned.
pub const LATEST: &str = "latest";

/// A level of the Pod Security Standards, from the most lenient to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything is allowed.
    Privileged,
    /// Known privilege escalations are refused.
    Baseline,
    /// Pods are hardened.
    Restricted,
}

/// The text is not a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of privileged, baseline, restricted")]
pub struct NotALevel;

/// The text is not a version that Pod Security knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be \"latest\" or \"v1.x\"")]
pub struct NotAVersion;

/// Whether the agent writes this label if a level is enforced.
pub fn is_enforced(key: &str) -> bool {
    matches!(key, ENFORCE | ENFORCE_VERSION)
}

/// The host's key of a client's label `key`, if a level is enforced.
pub fn requested_key(key: &str) -> Option<String> {
    is_enforced(key).then(|| parked(key))
}

/// The key that clients see for this key of the host.
pub fn client_key(key: &str) -> Option<&'static str> {
    let shown = unparked(key)?;
    [ENFORCE, ENFORCE_VERSION].into_iter().find(|known| shown == *known)
}

/// Validates a value of a client, with Kubernetes' error messages (`ParseLevel` and `ParseVersion` in
/// pod-security-admission's `api/helpers.go`).
pub fn check(key: &str, value: &str) -> Result<(), String> {
    if key == ENFORCE {
        return value.parse::<Level>().map(drop).map_err(|error| error.to_string());
    }
    let minor = value.strip_prefix("v1.");
    let is_number = |minor: &str| {
        !minor.is_empty()
            && minor.bytes().all(|byte| byte.is_ascii_digit())
            && (minor == "0" || !minor.starts_with('0'))
            && minor.parse::<i64>().is_ok()
    };
    if value == LATEST || minor.is_some_and(is_number) { Ok(()) } else { Err(NotAVersion.to_string()) }
}

// === impl Level ===

impl Level {
    /// The value of a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }

    /// The level that the host enforces if this one is configured and a client requests `requested`. Like the host, treats
    /// an invalid level as the strictest.
    #[must_use]
    pub fn with_requested(self, requested: Option<&str>) -> Self {
        requested.map_or(self, |requested| self.max(requested.parse().unwrap_or(Self::Restricted)))
    }

    /// The labels of a host namespace whose client requests `requested`.
    pub fn labels(self, requested: Option<&str>) -> [(&'static str, &'static str); 3] {
        [(MARK, self.as_str()), (ENFORCE, self.with_requested(requested).as_str()), (ENFORCE_VERSION, LATEST)]
    }
}

impl FromStr for Level {
    type Err = NotALevel;
    fn from_str(text: &str) -> Result<Self, NotALevel> {
        [Self::Privileged, Self::Baseline, Self::Restricted]
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or(NotALevel)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_level_is_enforced() {
        for (level, requested, enforced) in [
            (Level::Baseline, None, "baseline"),
            (Level::Baseline, Some("privileged"), "baseline"),
            (Level::Baseline, Some("baseline"), "baseline"),
            (Level::Baseline, Some("restricted"), "restricted"),
            (Level::Restricted, Some("baseline"), "restricted"),
            (Level::Privileged, Some("baseline"), "baseline"),
            (Level::Baseline, Some("nonsense"), "restricted"),
        ] {
            assert_eq!(level.with_requested(requested).as_str(), enforced, "{level} {requested:?}");
        }
    }

    #[test]
    fn the_requested_level_has_its_own_label() {
        for key in [ENFORCE, ENFORCE_VERSION] {
            let host = requested_key(key).unwrap();
            assert!(!is_enforced(&host));
            assert_eq!(client_key(&host), Some(key));
        }
        assert_eq!((requested_key("pod-security.kubernetes.io/warn"), client_key(ENFORCE)), (None, None));
        assert_eq!(client_key(&parked("app")), None);
    }

    #[test]
    fn values_are_validated_as_by_the_host() {
        for (key, value) in [(ENFORCE, "baseline"), (ENFORCE_VERSION, "latest"), (ENFORCE_VERSION, "v1.0")] {
            assert_eq!(check(key, value), Ok(()), "{value}");
        }
        assert_eq!(check(ENFORCE, "Baseline").unwrap_err(), "must be one of privileged, baseline, restricted");
        for value in ["", "v1", "v1.", "v1.01", "v2.1", "1.30", "v1.x", "v1.99999999999999999999"] {
            assert_eq!(check(ENFORCE_VERSION, value).unwrap_err(), "must be \"latest\" or \"v1.x\"", "{value}");
        }
    }
}
