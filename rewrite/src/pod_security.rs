//! Pod Security (`pod-security.kubernetes.io`) where the operator of the host enforces a level in a virtual cluster.
//!
//! The host gets the stricter of that level and the one that a client asks for. The labels with which clients ask are
//! [parked](crate::parked): renaming is one to one, so the host works out what patches, applies and managed fields say of
//! them. The labels that the host acts on belong to the agent, and clients never see them.
//!
//! What is *not* here: a virtual cluster without an enforced level, whose labels pass as they are.

use std::fmt;
use std::str::FromStr;

use crate::parked::{parked, unparked};

/// The label that says which level the host enforces (`EnforceLevelLabel` in pod-security-admission's
/// `api/constants.go`).
pub const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
/// The label that says of which version of Kubernetes that level is (`EnforceVersionLabel`, ibidem).
pub const ENFORCE_VERSION: &str = "pod-security.kubernetes.io/enforce-version";
/// The label of a host namespace that says which level the configuration enforces in it. Where it is, [`ENFORCE`] and
/// [`ENFORCE_VERSION`] are the agent's, and those of the client are parked.
pub const MARK: &str = "atoll.dev/pod-security";
/// An older version of a level checks less, so none is pinned.
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

/// The text is no level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of privileged, baseline, restricted")]
pub struct NotALevel;

/// The text is no version that Pod Security knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be \"latest\" or \"v1.x\"")]
pub struct NotAVersion;

/// Whether the agent writes this label where a level is enforced.
pub fn is_enforced(key: &str) -> bool {
    matches!(key, ENFORCE | ENFORCE_VERSION)
}

/// The label under which the host keeps what a client asks for with `key`, if a level is enforced.
pub fn asked_key(key: &str) -> Option<String> {
    is_enforced(key).then(|| parked(key))
}

/// The label that a client sees instead of this one of the host.
pub fn shown_key(key: &str) -> Option<&'static str> {
    let shown = unparked(key)?;
    [ENFORCE, ENFORCE_VERSION].into_iter().find(|known| shown == *known)
}

/// Says what is wrong with a value that a client asks for, in Kubernetes' words (`ParseLevel` and `ParseVersion` in
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

    /// What the host enforces where this level is configured and a client asks for `asked`. What is no level the host
    /// takes for the strictest.
    #[must_use]
    pub fn with_asked(self, asked: Option<&str>) -> Self {
        asked.map_or(self, |asked| self.max(asked.parse().unwrap_or(Self::Restricted)))
    }

    /// The labels of a host namespace whose client asks for `asked`.
    pub fn labels(self, asked: Option<&str>) -> [(&'static str, &'static str); 3] {
        [(MARK, self.as_str()), (ENFORCE, self.with_asked(asked).as_str()), (ENFORCE_VERSION, LATEST)]
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
        for (level, asked, enforced) in [
            (Level::Baseline, None, "baseline"),
            (Level::Baseline, Some("privileged"), "baseline"),
            (Level::Baseline, Some("baseline"), "baseline"),
            (Level::Baseline, Some("restricted"), "restricted"),
            (Level::Restricted, Some("baseline"), "restricted"),
            (Level::Privileged, Some("baseline"), "baseline"),
            (Level::Baseline, Some("nonsense"), "restricted"),
        ] {
            assert_eq!(level.with_asked(asked).as_str(), enforced, "{level} {asked:?}");
        }
    }

    #[test]
    fn what_a_client_asks_for_has_a_label_of_its_own() {
        for key in [ENFORCE, ENFORCE_VERSION] {
            let host = asked_key(key).unwrap();
            assert!(!is_enforced(&host));
            assert_eq!(shown_key(&host), Some(key));
        }
        assert_eq!((asked_key("pod-security.kubernetes.io/warn"), shown_key(ENFORCE)), (None, None));
        assert_eq!(shown_key(&parked("app")), None);
    }

    #[test]
    fn values_are_judged_as_by_the_host() {
        for (key, value) in [(ENFORCE, "baseline"), (ENFORCE_VERSION, "latest"), (ENFORCE_VERSION, "v1.0")] {
            assert_eq!(check(key, value), Ok(()), "{value}");
        }
        assert_eq!(check(ENFORCE, "Baseline").unwrap_err(), "must be one of privileged, baseline, restricted");
        for value in ["", "v1", "v1.", "v1.01", "v2.1", "1.30", "v1.x", "v1.99999999999999999999"] {
            assert_eq!(check(ENFORCE_VERSION, value).unwrap_err(), "must be \"latest\" or \"v1.x\"", "{value}");
        }
    }
}
