//! The added clusters on disk: one directory for each, with its client CA and the ID of its agent.
//!
//! A cluster exists if it has the file with the ID, which is written last and removed first. Several proxy-servers can share the
//! directory, and hold a lock while they change it.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ops::files::{Existing, LOCK, Secrecy, WriteError, lock, write};
use ops::log::chain;
use ops::pki::{Authority, AuthorityError, IssueError};
use protocol::{AgentId, ClusterName, MemberSettings};
use tracing::warn;

/// The added clusters.
pub type Added = BTreeMap<ClusterName, AddedCluster>;

/// A cluster that an agent has added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedCluster {
    /// The agent.
    pub agent: AgentId,
    /// What the agent asks for in Karmada.
    pub member: Option<MemberSettings>,
}

/// What agents ask for in Karmada for clusters, and the agents to which these belong.
pub(super) type Changes = HashMap<ClusterName, (AgentId, Option<MemberSettings>)>;

/// What has become of the clusters that an agent offers.
#[derive(Debug, Default)]
pub struct Addition {
    /// They are clusters of the agent now.
    pub owned: Vec<ClusterName>,
    /// Another agent has added them.
    pub of_others: Vec<ClusterName>,
    /// The agent has as many as its grant allows.
    pub beyond_limit: Vec<ClusterName>,
    /// They cannot be added.
    pub failed: Vec<(ClusterName, StoreError)>,
}

/// The directory of the added clusters.
#[derive(Clone, Debug)]
pub struct Store(PathBuf);

/// The directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Reading, locking or removing.
    #[error("{}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something has removed the lock file.
    #[error("{} does not exist: is its file system mounted? The clusters stay", .0.display())]
    Missing(PathBuf),
    /// Somebody else has created the key of the client CA.
    #[error("{} exists, but no agent has added {name}: list {name} in `clusters`, or delete the directory", path.display())]
    Foreign {
        /// The key.
        path: PathBuf,
        /// The cluster.
        name: ClusterName,
    },
    /// Writing.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A client CA cannot be created.
    #[error("cannot create a client CA")]
    Create(#[from] IssueError),
    /// A client CA cannot be used.
    #[error("the client CA is not valid")]
    Authority(#[from] AuthorityError),
}

/// How long a client CA is valid: as long as those of `atoll certs cluster`.
const CA_LIFETIME: Duration = Duration::from_secs(3650 * 24 * 3600);

/// The name of the file with the ID of the agent.
const AGENT: &str = "agent";
/// The name of the file that exists while a process creates or removes the others: their absence is then no accident.
const UNFINISHED: &str = "unfinished";
/// The name of the file with the certificate of the client CA.
const CERTIFICATE: &str = "client-ca.crt";
/// How long the certificate of a removed cluster stays. A cluster leaves Karmada within minutes.
const KEPT: Duration = Duration::from_secs(3600);
/// The name of the file with the key of the client CA.
const KEY: &str = "client-ca.key";
/// The name of the file with what the agent asks for in Karmada, as JSON.
const MEMBER: &str = "member.json";
/// More than the longest ID.
const MAX_AGENT: u64 = 1024;
/// More than the longest valid settings.
const MAX_MEMBER: u64 = 64 * 1024;

// === impl Store ===

impl Store {
    /// The clusters in this directory. It is created with the first one.
    pub fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// All clusters. Ignores what is no cluster.
    pub fn list(&self) -> Result<Added, StoreError> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Added::new()),
            entries => entries.map_err(|source| self.error(source))?,
        };
        let mut added = Added::new();
        for entry in entries {
            let entry = entry.map_err(|source| self.error(source))?;
            let name = entry.file_name().to_str().and_then(|name| name.parse::<ClusterName>().ok());
            if let Some(name) = name
                && let Some(agent) = agent(&entry.path())?
            {
                added.insert(name, AddedCluster { agent, member: member(&entry.path())? });
            }
        }
        Ok(added)
    }

    /// All clusters, when these are known already.
    ///
    /// # Errors
    /// If the directory is there without its lock file, or is not there, its file system is probably not mounted. Otherwise, all
    /// clusters would be removed, and would leave Karmada with everything in them.
    pub fn list_again(&self, known: &Added) -> Result<Added, StoreError> {
        let lock = self.0.join(LOCK);
        if !known.is_empty() && !lock.exists() {
            return Err(StoreError::Missing(lock));
        }
        self.list()
    }

    /// Adds clusters of an agent, up to this total number of its clusters. If one cannot be added, the others are.
    pub fn add(&self, agent: &AgentId, names: &[ClusterName], limit: usize) -> Result<Addition, StoreError> {
        // Other users must not be able to take the lock, or to read keys.
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        created.map_err(|source| self.error(source))?;
        let _lock = self.lock()?;
        let added = self.list()?;
        let mut count = added.values().filter(|cluster| cluster.agent == *agent).count();
        let mut addition = Addition::default();
        for name in names {
            match added.get(name) {
                Some(cluster) if cluster.agent == *agent => addition.owned.push(name.clone()),
                Some(_) => addition.of_others.push(name.clone()),
                None if count >= limit => addition.beyond_limit.push(name.clone()),
                None => match self.create(name, agent) {
                    Ok(()) => {
                        addition.owned.push(name.clone());
                        count += 1;
                    }
                    Err(error) => addition.failed.push((name.clone(), error)),
                },
            }
        }
        Ok(addition)
    }

    fn create(&self, name: &ClusterName, agent: &AgentId) -> Result<(), StoreError> {
        let directory = self.0.join(name.as_str());
        let authority = Authority::create(&format!("Atoll client CA of {name}"), CA_LIFETIME)?;
        let pair = authority.pem();
        let file =
            |name, content: &str, secrecy| write(&directory.join(name), content.as_bytes(), secrecy, Existing::Replace);
        // An existing key is not ours, unless a process has stopped in between: `atoll certs cluster` may have created it.
        if directory.join(KEY).exists() && !directory.join(UNFINISHED).exists() {
            return Err(StoreError::Foreign { path: directory.join(KEY), name: name.clone() });
        }
        file(UNFINISHED, "", Secrecy::Public)?;
        file(KEY, pair.key.expose(), Secrecy::Secret)?;
        file(CERTIFICATE, &pair.certificate, Secrecy::Public)?;
        file(AGENT, agent.as_str(), Secrecy::Public)?;
        remove_file(directory.join(UNFINISHED))
    }

    /// Writes what the agents ask for in Karmada. Returns what could not be written.
    pub(super) fn describe(&self, changes: Changes) -> Changes {
        if changes.is_empty() {
            return changes;
        }
        let _lock = match self.lock() {
            Ok(lock) => lock,
            Err(error) => {
                warn!(error = %chain(&error), "cannot write the settings of members of Karmada");
                return changes;
            }
        };
        let write = |(name, (agent, member)): &(ClusterName, (AgentId, Option<MemberSettings>))| {
            let written = self.describe_one(name, agent, member.as_ref());
            written.inspect_err(|error| warn!(cluster = %name, error = %chain(error), "cannot write the settings of a member of Karmada"))
        };
        changes.into_iter().filter(|change| write(change).is_err()).collect()
    }

    fn describe_one(
        &self,
        name: &ClusterName,
        owner: &AgentId,
        member: Option<&MemberSettings>,
    ) -> Result<(), StoreError> {
        let directory = self.0.join(name.as_str());
        if agent(&directory)?.as_ref() != Some(owner) {
            return Ok(());
        }
        let file = directory.join(MEMBER);
        let Some(member) = member else { return remove_file(file) };
        let text = serde_json::to_vec(member).expect("maps of strings always serialise");
        Ok(write(&file, &text, Secrecy::Public, Existing::Replace)?)
    }

    /// The client CA of a cluster of this agent. `None` if the cluster is not the agent's.
    ///
    /// Under the lock, because another agent may add a removed cluster again, which then has another CA.
    pub(crate) fn client_ca(&self, name: &ClusterName, owner: &AgentId) -> Result<Option<Authority>, StoreError> {
        let _lock = self.lock()?;
        let directory = self.0.join(name.as_str());
        if agent(&directory)?.as_ref() != Some(owner) {
            return Ok(None);
        }
        let file = |name: &str| {
            let path = directory.join(name);
            fs::read(&path).map_err(|source| StoreError::Io { path, source })
        };
        Ok(Some(Authority::from_pem(&file(CERTIFICATE)?, &file(KEY)?)?))
    }

    /// Removes a cluster of an agent, and the key of its client CA. The certificate of the CA stays for an hour, because
    /// the cluster may still be leaving Karmada.
    pub fn remove(&self, name: &ClusterName, owner: &AgentId) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let directory = self.0.join(name.as_str());
        // Another process may have removed it, and another agent may have added it again.
        if agent(&directory)?.as_ref() != Some(owner) {
            return Ok(());
        }
        write(&directory.join(UNFINISHED), b"", Secrecy::Public, Existing::Replace)?;
        for file in [AGENT, KEY, MEMBER, UNFINISHED] {
            remove_file(directory.join(file))?;
        }
        Ok(())
    }

    /// Removes the directories of clusters that were removed some time ago, so that an agent cannot fill the file system with names.
    pub(super) fn sweep(&self, now: SystemTime) -> Result<(), StoreError> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(|source| self.error(source))?,
        };
        let old: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| is_left_over(path, now)).collect();
        if old.is_empty() {
            return Ok(());
        }
        let _lock = self.lock()?;
        for directory in old {
            // A cluster of this name may have been added since.
            if is_left_over(&directory, now) {
                remove_file(directory.join(CERTIFICATE))?;
                fs::remove_dir(&directory).map_err(|source| StoreError::Io { path: directory, source })?;
            }
        }
        Ok(())
    }

    /// Unlocked when it is dropped.
    fn lock(&self) -> Result<File, StoreError> {
        lock(&self.0).map_err(|source| StoreError::Io { path: self.0.join(LOCK), source })
    }

    fn error(&self, source: io::Error) -> StoreError {
        StoreError::Io { path: self.0.clone(), source }
    }
}

/// Whether [`Store::remove`] has left this directory behind, and no Cluster of Karmada can need it any more.
fn is_left_over(directory: &Path, now: SystemTime) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str());
    if name.is_none_or(|name| name.parse::<ClusterName>().is_err()) {
        return false;
    }
    let is_old = || {
        let changed = fs::metadata(directory).and_then(|of| of.modified()).ok()?;
        Some(now.duration_since(changed).is_ok_and(|age| age >= KEPT))
    };
    let Ok(files) = fs::read_dir(directory) else { return false };
    let mut files = files.map(|file| file.map(|file| file.file_name()));
    matches!((files.next(), files.next()), (Some(Ok(only)), None) if only == CERTIFICATE) && is_old() == Some(true)
}

/// Removes a file, if it exists.
fn remove_file(path: PathBuf) -> Result<(), StoreError> {
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|source| StoreError::Io { path, source }),
    }
}

/// The agent of the cluster in this directory. `None` if there is no cluster.
///
/// # Errors
/// If the file may exist but cannot be read. A file system that fails for a moment must not remove a cluster.
fn agent(directory: &Path) -> Result<Option<AgentId>, StoreError> {
    let text = read(directory.join(AGENT), MAX_AGENT)?;
    Ok(text.and_then(|text| text.trim().parse().ok()))
}

/// What the agent asks for in Karmada. `None` if it asks for nothing.
fn member(directory: &Path) -> Result<Option<MemberSettings>, StoreError> {
    let text = read(directory.join(MEMBER), MAX_MEMBER)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// A file of a cluster. `None` if it does not exist, or is no text.
fn read(path: PathBuf, max: u64) -> Result<Option<String>, StoreError> {
    use io::ErrorKind::{InvalidData, NotADirectory, NotFound};
    use io::Read as _;
    let mut text = String::new();
    match File::open(&path).and_then(|file| file.take(max).read_to_string(&mut text)) {
        Ok(_) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | InvalidData) => Ok(None),
        Err(source) => Err(StoreError::Io { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<ClusterName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn a_cluster_belongs_to_who_added_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().join("clusters"));
        let (one, other): (AgentId, AgentId) = ("host-1".parse().unwrap(), "host-2".parse().unwrap());
        assert_eq!(store.list().unwrap(), Added::new());
        assert_eq!(store.add(&one, &names(&["site-a", "site-b"]), 10).unwrap().owned, names(&["site-a", "site-b"]));
        assert_eq!(store.add(&other, &names(&["site-b", "site-c"]), 10).unwrap().owned, names(&["site-c"]));
        assert_eq!(store.list().unwrap().len(), 3);

        let ca = |agent| store.client_ca(&names(&["site-b"])[0], agent).unwrap();
        assert!(ca(&one).is_some() && ca(&other).is_none());
        store.remove(&names(&["site-b"])[0], &other).unwrap();
        assert_eq!(store.list().unwrap().len(), 3, "it is not the agent's");
        let key = store.0.join("site-b/client-ca.key");
        let certificate = || fs::read(store.0.join("site-b/client-ca.crt")).unwrap();
        let (before, had_key) = (certificate(), key.exists());
        store.remove(&names(&["site-b"])[0], &one).unwrap();
        assert!(had_key && !key.exists() && certificate() == before);
        assert_eq!(store.add(&other, &names(&["site-b"]), 10).unwrap().owned, names(&["site-b"]));
        assert_ne!(certificate(), before, "the certificates of the old users must not be valid");
        assert!(ca(&one).is_none() && ca(&other).is_some());
    }

    #[test]
    fn a_removed_cluster_leaves_no_directory() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().to_owned());
        let agent: AgentId = "host-1".parse().unwrap();
        store.add(&agent, &names(&["a", "b"]), 9).unwrap();
        store.remove(&names(&["a"])[0], &agent).unwrap();
        // `atoll certs cluster` may have created this one.
        fs::create_dir(dir.path().join("c")).unwrap();
        fs::write(dir.path().join("c/client-ca.crt"), "").unwrap();
        fs::write(dir.path().join("c/admin.crt"), "").unwrap();
        let exists = |name: &str| dir.path().join(name).exists();
        store.sweep(SystemTime::now()).unwrap();
        assert!(exists("a"), "it may still be leaving Karmada");
        store.sweep(SystemTime::now() + KEPT * 2).unwrap();
        assert!(!exists("a") && exists("b/client-ca.crt") && exists("c/client-ca.crt"));
        assert_eq!(store.add(&agent, &names(&["a"]), 9).unwrap().owned, names(&["a"]));
    }

    #[test]
    fn an_unfinished_cluster_stops_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().to_owned());
        let agent: AgentId = "host-1".parse().unwrap();
        for name in ["a", "b"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join(KEY), "key").unwrap();
        }
        fs::write(dir.path().join("b").join(UNFINISHED), "").unwrap();
        let addition = store.add(&agent, &names(&["a", "b", "c"]), 9).unwrap();
        assert_eq!(addition.owned, names(&["b", "c"]));
        assert!(matches!(&addition.failed[..], [(name, StoreError::Foreign { .. })] if name.as_str() == "a"));
        assert_eq!(fs::read(dir.path().join("a").join(KEY)).unwrap(), b"key");
        assert!(!dir.path().join("b").join(UNFINISHED).exists());
    }

    #[test]
    fn an_agent_adds_no_more_than_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().to_owned());
        let agent: AgentId = "host-1".parse().unwrap();
        assert_eq!(store.add(&agent, &names(&["a", "b", "c"]), 2).unwrap().owned, names(&["a", "b"]));
        assert_eq!(store.add(&agent, &names(&["c", "b"]), 2).unwrap().owned, names(&["b"]));
        store.remove(&names(&["a"])[0], &agent).unwrap();
        assert_eq!(store.add(&agent, &names(&["c", "d"]), 2).unwrap().owned, names(&["c"]));
    }

    #[test]
    fn a_directory_that_is_not_mounted_removes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().join("clusters"));
        let agent: AgentId = "host-1".parse().unwrap();
        assert_eq!(store.list_again(&Added::new()).unwrap(), Added::new());
        store.add(&agent, &names(&["a"]), 2).unwrap();
        let known = store.list_again(&Added::new()).unwrap();
        assert_eq!(store.list_again(&known).unwrap(), known);
        fs::remove_dir_all(&store.0).unwrap();
        assert!(matches!(store.list_again(&known), Err(StoreError::Missing(_))));
        fs::create_dir(&store.0).unwrap();
        assert!(matches!(store.list_again(&known), Err(StoreError::Missing(_))));
    }

    #[test]
    fn a_file_that_cannot_be_read_removes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().to_owned());
        let agent: AgentId = "host-1".parse().unwrap();
        store.add(&agent, &names(&["a", "b"]), 2).unwrap();
        let known = store.list().unwrap();
        // Reading a directory as a file fails, also for root.
        let file = dir.path().join("a").join(AGENT);
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(matches!(store.list_again(&known), Err(StoreError::Io { path, .. }) if path == file));
        fs::remove_dir(&file).unwrap();
        assert_eq!(store.list_again(&known).unwrap().len(), 1, "the file is gone");
    }

    #[test]
    fn what_is_no_cluster_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().to_owned());
        for (directory, content) in [("no-agent", None), ("bad-agent", Some("a b")), ("Bad_Name", Some("host-1"))] {
            fs::create_dir(dir.path().join(directory)).unwrap();
            if let Some(content) = content {
                fs::write(dir.path().join(directory).join(AGENT), content).unwrap();
            }
        }
        assert_eq!(store.list().unwrap(), Added::new());
    }
}
