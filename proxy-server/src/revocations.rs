//! Certificates that are refused although they are valid, for example because their key was stolen.
//!
//! The operator lists them in a file. A change of the file is in force within seconds: new requests and registrations get a
//! refusal, and connections with such a certificate end, together with their open streams.
//!
//! A certificate revocation list (RFC 5280 section 5) names certificates by their serial numbers. Whoever loses a kubeconfig
//! usually has no copy of it, so this list also names users and agents, with a time: certificates that are issued afterwards are
//! accepted.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::SystemTime;

use ops::files::{LoadError, Reloader, Watched};
use ops::pki::Requester;
use ops::secret::sha256;
use ops::tls::PeerIdentity;
use protocol::{AgentId, ClusterName};

use crate::config::RevocationList;

/// The list of the operator, in its newest version. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Revocations(Option<Watched<Revoked>>);

/// The list, for look-ups.
#[derive(Debug, Default)]
pub(crate) struct Revoked {
    /// Certificates of these agents are refused if the agent enrolled before this time.
    agents: HashMap<AgentId, SystemTime>,
    users: HashMap<ClusterName, HashMap<String, SystemTime>>,
    credentials: HashSet<String>,
    /// SHA-256 of the file.
    digest: String,
}

/// The list in force, for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InForce {
    /// SHA-256 of the file.
    pub(crate) digest: String,
    pub(crate) agents: usize,
    pub(crate) users: usize,
    pub(crate) credentials: usize,
}

/// What identifies a certificate, or a token, in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateId {
    common_name: String,
    /// [`PeerIdentity::enrolled`].
    enrolled: SystemTime,
    /// The credential ids of the certificate and of its equivalents.
    credentials: Vec<String>,
    /// The agent that has requested the certificate for a user. Whoever has stolen the key of the agent may have it.
    requester: Option<Requester>,
}

// === impl Revocations ===

impl Revocations {
    /// Reads the file, which is reloaded when it changes. Nothing is revoked without a file.
    pub(crate) fn open(path: Option<&Path>, reloader: &Reloader) -> Result<Self, LoadError> {
        let Some(path) = path else { return Ok(Self(None)) };
        let origin = path.to_owned();
        let parse = move |[text]: [&[u8]; 1]| {
            ops::config::parse(&String::from_utf8_lossy(text), &origin)
                .map(|list: RevocationList| Revoked { digest: sha256(text), ..Revoked::from(&list) })
        };
        reloader.watch([path.to_owned()], parse).map(|list| Self(Some(list)))
    }

    /// Whether this certificate of a user of the cluster is revoked.
    pub(crate) fn revokes_user(&self, cluster: &ClusterName, certificate: &CertificateId) -> bool {
        self.0.as_ref().is_some_and(|list| list.borrow().revokes_user(cluster, certificate))
    }

    /// Whether this certificate of an agent, or of another proxy-server, is revoked.
    pub(crate) fn revokes_agent(&self, agent: &AgentId, certificate: &CertificateId) -> bool {
        self.0.as_ref().is_some_and(|list| list.borrow().revokes_agent(agent, certificate))
    }

    /// Certificates of this agent that begin to be valid before this time are refused.
    pub(crate) fn agent_revoked_before(&self, agent: &AgentId) -> SystemTime {
        let list = self.0.as_ref().map(Watched::borrow);
        list.and_then(|list| list.agents.get(agent).copied()).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// Certificates of this user of the cluster that begin to be valid before this time are refused.
    pub(crate) fn user_revoked_before(&self, cluster: &ClusterName, user: &str) -> SystemTime {
        let list = self.0.as_ref().map(Watched::borrow);
        let time = list.and_then(|list| list.users.get(cluster)?.get(user).copied());
        time.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// What is in force. `None` without a file.
    pub(crate) fn in_force(&self) -> Option<InForce> {
        let list = self.0.as_ref()?.borrow();
        Some(InForce {
            digest: list.digest.clone(),
            agents: list.agents.len(),
            users: list.users.values().map(HashMap::len).sum(),
            credentials: list.credentials.len(),
        })
    }

    /// Completes when the condition holds for the newest list.
    pub(crate) async fn until(&self, is_revoked: impl Fn(&Revoked) -> bool) {
        let Some(list) = &self.0 else { return std::future::pending().await };
        let mut changes = list.changes();
        while !is_revoked(&list.borrow()) {
            if !changes.changed().await {
                // The process stops reloading files.
                return std::future::pending().await;
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn fixed(list: &RevocationList) -> Self {
        Self(Some(Watched::fixed(list.into())))
    }
}

// === impl Revoked ===

impl Revoked {
    pub(crate) fn revokes_user(&self, cluster: &ClusterName, certificate: &CertificateId) -> bool {
        let users = self.users.get(cluster);
        let before = users.and_then(|users| users.get(&certificate.common_name));
        certificate.is_from_before(before)
            || self.revokes_requester(certificate)
            || self.revokes_credential(certificate)
    }

    fn revokes_requester(&self, certificate: &CertificateId) -> bool {
        certificate.requester.as_ref().is_some_and(|Requester { common_name, enrolled }| {
            let before = self.agents.iter().find(|(agent, _)| agent.as_str() == common_name);
            before.is_some_and(|(_, before)| enrolled < before)
        })
    }

    pub(crate) fn revokes_agent(&self, agent: &AgentId, certificate: &CertificateId) -> bool {
        certificate.is_from_before(self.agents.get(agent)) || self.revokes_credential(certificate)
    }

    fn revokes_credential(&self, certificate: &CertificateId) -> bool {
        certificate.credentials.iter().any(|credential| self.credentials.contains(credential))
    }
}

impl From<&RevocationList> for Revoked {
    fn from(list: &RevocationList) -> Self {
        let mut revoked = Self::default();
        for one in &list.revoked {
            let before = one.issued_before.map_or(SystemTime::UNIX_EPOCH, ops::date::Moment::time);
            if let Some(agent) = &one.agent {
                latest(revoked.agents.entry(agent.clone()).or_insert(before), before);
            }
            if let (Some(cluster), Some(user)) = (&one.cluster, &one.user) {
                let users = revoked.users.entry(cluster.clone()).or_default();
                latest(users.entry(user.clone()).or_insert(before), before);
            }
            revoked.credentials.extend(one.credential.as_ref().map(ToString::to_string));
        }
        revoked
    }
}

/// If a name is listed more than once, the latest time counts.
fn latest(time: &mut SystemTime, other: SystemTime) {
    *time = other.max(*time);
}

// === impl CertificateId ===

impl CertificateId {
    #[cfg(test)]
    pub(crate) fn of_user(common_name: &str) -> Self {
        Self {
            common_name: common_name.to_owned(),
            enrolled: SystemTime::now(),
            credentials: Vec::new(),
            requester: None,
        }
    }

    /// A token of an OIDC issuer. The list names the user as the cluster knows it, with the prefix of the configuration. The clock of
    /// the issuer may be ahead of that of the operator who revokes tokens.
    pub(crate) fn of_token(user: &str, issued: SystemTime) -> Self {
        let enrolled = issued.checked_sub(oidc::CLOCK_SKEW).unwrap_or(SystemTime::UNIX_EPOCH);
        Self { common_name: user.to_owned(), enrolled, credentials: Vec::new(), requester: None }
    }

    /// The user or the agent.
    pub(crate) fn common_name(&self) -> &str {
        &self.common_name
    }

    /// When its owner has proven who it is without a certificate.
    pub(crate) fn enrolled(&self) -> SystemTime {
        self.enrolled
    }

    /// Its credential id (KEP-4193).
    pub(crate) fn credential(&self) -> &str {
        self.credentials.first().map_or("", String::as_str)
    }

    fn is_from_before(&self, time: Option<&SystemTime>) -> bool {
        time.is_some_and(|time| self.enrolled < *time)
    }
}

impl From<&PeerIdentity> for CertificateId {
    fn from(identity: &PeerIdentity) -> Self {
        let PeerIdentity { common_name, enrolled, credential, equivalents, requester, .. } = identity;
        let credentials = std::iter::once(credential).chain(equivalents).cloned().collect();
        Self { common_name: common_name.clone(), enrolled: *enrolled, credentials, requester: requester.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ops::date::Moment;

    use super::*;
    use crate::config::Revocation;

    const NOON: SystemTime = SystemTime::UNIX_EPOCH;

    fn at(seconds: u64) -> SystemTime {
        NOON + Duration::from_secs(seconds)
    }

    fn certificate(common_name: &str, issued: u64, digit: &str) -> CertificateId {
        let credential = format!("X509SHA256={}", digit.repeat(64));
        CertificateId {
            common_name: common_name.to_owned(),
            enrolled: at(issued),
            credentials: vec![credential],
            requester: None,
        }
    }

    fn list(revoked: Vec<Revocation>) -> RevocationList {
        RevocationList { revoked: revoked.into_iter().map(Into::into).collect() }
    }

    fn user(cluster: &str, user: &str, before: u64) -> Revocation {
        Revocation {
            cluster: Some(cluster.parse().unwrap()),
            user: Some(user.to_owned()),
            issued_before: Some(Moment::from(at(before))),
            ..Revocation::default()
        }
    }

    #[test]
    fn older_certificates_of_a_user_are_refused() {
        let revocations = Revocations::fixed(&list(vec![user("a", "jane", 100), user("a", "jane", 50)]));
        let [a, b] = ["a", "b"].map(|name| name.parse().unwrap());
        let revokes = |cluster, name, issued| revocations.revokes_user(cluster, &certificate(name, issued, "1"));
        assert!(revokes(&a, "jane", 99));
        assert!(!revokes(&a, "jane", 100), "it is a new one");
        assert!(!revokes(&b, "jane", 0), "another CA, so another user");
        assert!(!revokes(&a, "john", 0));
        assert!(!revocations.revokes_agent(&"jane".parse().unwrap(), &certificate("jane", 0, "1")));
        assert!(!Revocations::default().revokes_user(&a, &certificate("jane", 0, "1")));
    }

    /// A thief of the agent's key can have asked for certificates of users.
    #[test]
    fn what_a_revoked_agent_has_requested_is_refused() {
        let agent = Revocation {
            agent: Some("site-a".parse().unwrap()),
            issued_before: Some(Moment::from(at(100))),
            ..Revocation::default()
        };
        let revocations = Revocations::fixed(&list(vec![agent]));
        let cluster = "a".parse().unwrap();
        let revokes = |common_name: &str, enrolled| {
            let requester = Some(Requester { common_name: common_name.to_owned(), enrolled: at(enrolled) });
            // Issued after the revocation, by a proxy-server that does not have the newest list.
            revocations.revokes_user(&cluster, &CertificateId { requester, ..certificate("jane", 200, "1") })
        };
        assert!(revokes("site-a", 99) && !revokes("site-a", 100) && !revokes("site-b", 99));
    }

    #[test]
    fn agents_and_single_certificates_are_refused() {
        let agent = Revocation {
            agent: Some("site-a".parse().unwrap()),
            issued_before: Some(Moment::from(at(10))),
            ..Revocation::default()
        };
        let credential = format!("X509SHA256={}", "a".repeat(64)).parse().unwrap();
        let single = Revocation { credential: Some(credential), ..Revocation::default() };
        let revocations = Revocations::fixed(&list(vec![agent, single]));
        let [agent, other] = ["site-a", "site-b"].map(|name| name.parse().unwrap());
        let revokes = |agent, issued, digit| revocations.revokes_agent(agent, &certificate("x", issued, digit));
        assert!(revokes(&agent, 9, "1") && !revokes(&agent, 10, "1") && !revokes(&other, 9, "1"));
        assert!(revokes(&other, 99, "a"));
        assert!(revocations.revokes_user(&"c".parse().unwrap(), &certificate("jane", 99, "a")));
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_connection_ends_when_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("revocations.yaml");
        let write = |revoked: &str| {
            let text = format!("apiVersion: atoll.dev/v1alpha1\nkind: Revocations\nrevoked: [{revoked}]\n");
            std::fs::write(&path, text).unwrap();
        };
        write("");
        let reloader = Reloader::new(Duration::from_secs(5));
        let revocations = Revocations::open(Some(&path), &reloader).unwrap();
        let (cluster, old) = ("a".parse().unwrap(), certificate("jane", 1, "1"));
        let ended = revocations.until(|list| list.revokes_user(&cluster, &old));
        tokio::select! {
            () = ended => {}
            () = async {
                write("{cluster: a, user: jane, issuedBefore: 2026-01-01T00:00:00Z}");
                reloader.reload();
                std::future::pending::<()>().await;
            } => {}
        }
        assert!(revocations.revokes_user(&cluster, &old));
        write("{cluster: a, user: }");
        reloader.reload();
        assert!(revocations.revokes_user(&cluster, &old), "an invalid file changes nothing");
        let before = "issuedBefore: 2026-01-01T00:00:00Z";
        write(&format!(
            "{{agent: site-a, {before}}}, {{cluster: a, user: jane, {before}}}, {{cluster: b, user: jane, {before}}}"
        ));
        reloader.reload();
        let InForce { digest, agents, users, credentials } = revocations.in_force().unwrap();
        assert_eq!((agents, users, credentials), (1, 2, 0));
        assert_eq!(digest, sha256(&std::fs::read(&path).unwrap()));
        assert_eq!(Revocations::default().in_force(), None);
    }
}
