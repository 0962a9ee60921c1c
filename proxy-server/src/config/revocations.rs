//! The file that `revocations:` names: certificates that are refused although they are valid.

use std::fmt;
use std::str::FromStr;

use ops::config::{Document, Located, Problems, Unread};
use ops::date::Moment;
use protocol::{AgentId, ClusterName};
use serde::{Deserialize, Serialize};

/// `kind: Revocations`. `atoll revoke` writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevocationList {
    /// In the order in which they were added. Required, so that the beginning of a file is not a list without revocations.
    pub revoked: Vec<Located<Revocation>>,
}

/// Certificates that are refused: those of an agent, those of a user of a cluster, or a single one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revocation {
    /// Certificates of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Certificates of `user` for this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterName>,
    /// The common name of certificates for `cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A single certificate, for all agents and clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<Credential>,
    /// Of `agent` or `user`, the certificates that begin to be valid before this time are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_before: Option<Moment>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The digest of a certificate, as kube-apiserver writes it in its audit log (KEP-4193): `X509SHA256=` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Credential(String);

/// The text is no [`Credential`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a credential is {CREDENTIAL} and 64 hexadecimal digits")]
pub struct InvalidCredential;

/// The prefix of a [`Credential`].
const CREDENTIAL: &str = "X509SHA256=";

// === impl RevocationList ===

impl Document for RevocationList {
    const KIND: &'static str = "Revocations";

    fn read(document: Unread<'_>) -> Result<Self, Problems> {
        document.read()
    }

    fn check(&self, problems: &mut Problems) {
        for revocation in &self.revoked {
            if let Err(why) = revocation.check() {
                problems.at(revocation, why);
            }
        }
    }
}

// === impl Revocation ===

impl Revocation {
    fn check(&self) -> Result<(), &'static str> {
        let Self { agent, cluster, user, credential, issued_before, reason: _ } = self;
        match (agent, user, credential) {
            (Some(_), None, None) | (None, Some(_), None) if issued_before.is_none() => {
                Err("set issuedBefore: certificates that are valid since before this time are refused")
            }
            (None, Some(_), None) if cluster.is_none() => Err("set `cluster`, the cluster of the user"),
            (Some(_), None, None) | (None, None, Some(_)) if cluster.is_some() => Err("`cluster` is only for a `user`"),
            (None, None, Some(_)) if issued_before.is_some() => Err("issuedBefore is only for an `agent` or a `user`"),
            (Some(_), None, None) | (None, Some(_), None) | (None, None, Some(_)) => Ok(()),
            _ => Err("set one of `agent`, `user` and `credential`"),
        }
    }
}

// === impl Credential ===

impl Credential {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Credential {
    type Err = InvalidCredential;

    fn from_str(text: &str) -> Result<Self, InvalidCredential> {
        let digits = text.strip_prefix(CREDENTIAL).ok_or(InvalidCredential)?;
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(InvalidCredential);
        }
        Ok(Self(format!("{CREDENTIAL}{}", digits.to_ascii_lowercase())))
    }
}

impl TryFrom<String> for Credential {
    type Error = InvalidCredential;

    fn try_from(text: String) -> Result<Self, InvalidCredential> {
        text.parse()
    }
}

impl From<Credential> for String {
    fn from(credential: Credential) -> Self {
        credential.0
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(revoked: &str) -> Result<RevocationList, String> {
        let text = format!("apiVersion: atoll.dev/v1alpha1\nkind: Revocations\nrevoked:\n{revoked}");
        ops::config::parse(&text, Path::new("revocations.yaml")).map_err(|errors| errors.to_string())
    }

    #[test]
    fn each_entry_names_one_thing() {
        let digest = format!("X509SHA256={}", "aB".repeat(32));
        let list = parse(&format!(
            "- {{agent: site-a, issuedBefore: 2026-11-28T01:00:00Z, reason: stolen}}\n\
             - {{cluster: ke-beijing, user: jane, issuedBefore: 2026-11-28T01:00:00Z}}\n- {{credential: {digest}}}\n"
        ))
        .unwrap();
        assert_eq!(list.revoked.len(), 3);
        let credential = list.revoked[2].credential.as_ref().unwrap();
        assert_eq!(credential.as_str(), digest.replace("aB", "ab"));
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        for (entry, why) in [
            ("- {agent: site-a}", "issuedBefore"),
            ("- {user: jane, issuedBefore: 2026-11-28T01:00:00Z}", "the cluster of the user"),
            ("- {agent: site-a, cluster: c, issuedBefore: 2026-11-28T01:00:00Z}", "only for a `user`"),
            ("- {agent: site-a, user: jane, cluster: c, issuedBefore: 2026-11-28T01:00:00Z}", "set one of"),
            ("- {reason: x}", "set one of"),
            ("- {credential: X509SHA256=00}", "64 hexadecimal digits"),
            ("- {agent: site-a, issuedBefore: yesterday}", "4:"),
            ("- {agent: site-a, issued: now}", "issued"),
        ] {
            let error = parse(entry).unwrap_err();
            assert!(error.contains(why) && error.contains('4'), "{entry}: {error}");
        }
    }
}
