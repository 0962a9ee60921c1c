//! The version of the tunnel contract, which is not the version of the software.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `major.minor`. A new minor version adds fields that the other side may ignore. A new major version changes the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion {
    /// Both sides must have the same one.
    pub major: u16,
    /// The proxy-server may be one version ahead of the agent, because operators upgrade the cloud first and the sites
    /// later.
    pub minor: u16,
}

/// Two versions are incompatible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent speaks tunnel protocol {agent}, this proxy-server {server}; {}", self.advice())]
pub struct Incompatible {
    /// The version of the agent.
    pub agent: ProtocolVersion,
    /// The version of this proxy-server.
    pub server: ProtocolVersion,
}

/// The text is not `major.minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a protocol version is written major.minor, for example 1.0")]
pub struct InvalidVersion;

// === impl ProtocolVersion ===

impl ProtocolVersion {
    /// The version of this build.
    ///
    /// - 1.0: the first.
    /// - 1.1: the proxy-server accepts or refuses each cluster of an agent separately ([`crate::offers`]).
    pub const CURRENT: Self = Self { major: 1, minor: 1 };

    /// Whether a proxy-server of version `self` serves an agent of version `agent`.
    ///
    /// Newer agents are served too: they must work without what an older proxy-server does not send.
    pub fn accepts(self, agent: Self) -> Result<(), Incompatible> {
        let too_old = agent.minor.saturating_add(1) < self.minor;
        if agent.major != self.major || too_old {
            return Err(Incompatible { agent, server: self });
        }
        Ok(())
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for ProtocolVersion {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let (major, minor) = text.split_once('.').ok_or(InvalidVersion)?;
        Ok(Self {
            major: major.parse().map_err(|_| InvalidVersion)?,
            minor: minor.parse().map_err(|_| InvalidVersion)?,
        })
    }
}

impl Serialize for ProtocolVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProtocolVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

// === impl Incompatible ===

impl Incompatible {
    fn advice(self) -> &'static str {
        if self.agent < self.server { "upgrade the agent" } else { "upgrade the proxy-server" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn v(major: u16, minor: u16) -> ProtocolVersion {
        ProtocolVersion { major, minor }
    }

    #[test]
    fn one_minor_version_older_is_served_and_two_are_not() {
        assert_eq!(v(1, 3).accepts(v(1, 3)), Ok(()));
        assert_eq!(v(1, 3).accepts(v(1, 2)), Ok(()));
        assert_eq!(v(1, 3).accepts(v(1, 9)), Ok(()));
        let refused = v(1, 3).accepts(v(1, 1)).unwrap_err();
        assert!(refused.to_string().ends_with("upgrade the agent"));
        assert!(v(2, 0).accepts(v(1, 0)).is_err());
        assert!(v(1, 0).accepts(v(2, 0)).is_err());
    }

    #[test]
    fn this_build_serves_the_agents_of_the_previous_version() {
        let ProtocolVersion { major, minor } = ProtocolVersion::CURRENT;
        assert_eq!(ProtocolVersion::CURRENT.accepts(v(major, minor - 1)), Ok(()));
        assert_eq!(v(major, minor - 1).accepts(ProtocolVersion::CURRENT), Ok(()));
    }

    #[test]
    fn the_text_form_has_an_inverse() {
        assert_eq!("1.12".parse(), Ok(v(1, 12)));
        assert_eq!(v(1, 12).to_string(), "1.12");
        for bad in ["", "1", "1.", "1.x", "-1.0", "1.0.0", "70000.1"] {
            assert_eq!(bad.parse::<ProtocolVersion>(), Err(InvalidVersion), "{bad}");
        }
    }
}
