//! The join tokens: one file for each, in a directory that `atoll token` and the proxy-server share.
//!
//! The files contain no secrets: only a digest of each. Both processes hold a lock while they change a file, so a token cannot be
//! used more often than allowed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ops::date::Moment;
use ops::files::{Existing, LOCK, Secrecy, WriteError, lock, write};
use ops::secret::{random_text, sha256};
use protocol::AgentId;
use protocol::enrolment::TokenCredential;
use serde::{Deserialize, Serialize};

/// The tokens in a directory.
#[derive(Clone, Debug)]
pub struct Tokens(PathBuf);

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// The ID of the token, which is also the name of its file.
    #[serde(skip)]
    pub id: String,
    /// The agent that gets a certificate.
    pub agent: AgentId,
    /// When it was created.
    pub created: Moment,
    /// From this time on, it is not valid.
    pub expires: Moment,
    /// How many certificates can still be issued for this token.
    pub uses_left: u32,
    /// SHA-256 of the secret, in hexadecimal.
    secret_digest: String,
}

/// Why a token is not valid.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The text is not a join token.
    #[error("it is not a join token")]
    Malformed,
    /// There is no token with this ID, or its secret is another one.
    #[error("there is no such token")]
    Unknown,
    /// The certificates of its agent were revoked after it was created. Whoever stole a machine of the agent may also have the token.
    #[error("the token is older than the revocation of its agent")]
    Revoked,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

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
    /// A file of another kind, or of a later version.
    #[error("{} is not a token", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// Writing.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The system provided no random bytes.
    #[error("the system has no randomness")]
    Random,
}

const EXTENSION: &str = "json";

// === impl Tokens ===

impl Tokens {
    /// The tokens in this directory. It is created with the first token.
    pub fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Creates a token for an agent.
    pub fn create(
        &self,
        agent: &AgentId,
        lifetime: Duration,
        uses: u32,
        now: SystemTime,
    ) -> Result<TokenCredential, StoreError> {
        // Other users must not be able to take the lock.
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        created.map_err(|source| StoreError::Io { path: self.0.clone(), source })?;
        let _lock = self.lock()?;
        let text = |length| random_text(length).ok_or(StoreError::Random);
        let credential =
            TokenCredential::new(&text(10)?, &text(32)?).expect("the text has these lengths and characters");
        let token = Token {
            id: credential.id.clone(),
            agent: agent.clone(),
            created: Moment::from(now),
            expires: Moment::from(now + lifetime),
            uses_left: uses,
            secret_digest: sha256(credential.secret().as_bytes()),
        };
        self.write(&token)?;
        Ok(credential)
    }

    /// All tokens that are still valid, by their IDs. Removes the others.
    pub fn list(&self, now: SystemTime) -> Result<Vec<Token>, StoreError> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let _lock = self.lock()?;
        let (valid, expired) = self.read(usize::MAX, now)?;
        for token in expired {
            remove(&self.path(&token.id))?;
        }
        Ok(valid)
    }

    /// The tokens that are still valid among this number of files, for the status. Unlike [`Tokens::list`], it waits for no lock and
    /// removes nothing. A file is replaced as a whole, so it is read as a whole, too.
    pub(crate) fn look(&self, most: usize, now: SystemTime) -> Result<Vec<Token>, StoreError> {
        if self.0.exists() { Ok(self.read(most, now)?.0) } else { Ok(Vec::new()) }
    }

    /// The tokens in this number of files: those that are still valid, by age, and the others.
    fn read(&self, most: usize, now: SystemTime) -> Result<(Vec<Token>, Vec<Token>), StoreError> {
        let io = |source| StoreError::Io { path: self.0.clone(), source };
        let mut tokens = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(io)?.take(most) {
            let path = entry.map_err(io)?.path();
            let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            if path.extension().is_none_or(|extension| extension != EXTENSION) {
                continue;
            }
            tokens.extend(read(&path, id)?);
        }
        tokens.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(tokens.into_iter().partition(|token| token.expires.time() > now))
    }

    /// Removes a token. Returns whether it existed.
    pub fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let path = self.path(id);
        if !self.0.exists() {
            return Ok(false);
        }
        let _lock = self.lock()?;
        let exists = path.exists();
        if exists {
            remove(&path)?;
        }
        Ok(exists)
    }

    /// Counts one use of a token. Returns the agent that it is for. Tokens that are older than `revoked_before` of their agent are
    /// not valid.
    pub fn use_once(
        &self,
        credential: &TokenCredential,
        now: SystemTime,
        revoked_before: impl Fn(&AgentId) -> SystemTime,
    ) -> Result<AgentId, TokenError> {
        let path = self.path(&credential.id);
        // Strangers must not be able to make this process wait for the lock.
        if !path.exists() {
            return Err(TokenError::Unknown);
        }
        let _lock = self.lock()?;
        let mut token = read(&path, &credential.id)?.ok_or(TokenError::Unknown)?;
        // Both are digests of 160 random bits, so the time of the comparison tells nothing about the secret.
        if token.secret_digest != sha256(credential.secret().as_bytes()) {
            return Err(TokenError::Unknown);
        }
        if token.expires.time() <= now {
            remove(&path)?;
            return Err(TokenError::Expired);
        }
        if token.created.time() < revoked_before(&token.agent) {
            remove(&path)?;
            return Err(TokenError::Revoked);
        }
        token.uses_left = token.uses_left.saturating_sub(1);
        if token.uses_left == 0 {
            remove(&path)?;
        } else {
            self.write(&token)?;
        }
        Ok(token.agent)
    }

    fn write(&self, token: &Token) -> Result<(), StoreError> {
        let content = serde_json::to_vec_pretty(token).expect("strings and numbers always serialise");
        Ok(write(&self.path(&token.id), &content, Secrecy::Secret, Existing::Replace)?)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.0.join(id).with_extension(EXTENSION)
    }

    /// Unlocked when it is dropped.
    fn lock(&self) -> Result<File, StoreError> {
        lock(&self.0).map_err(|source| StoreError::Io { path: self.0.join(LOCK), source })
    }
}

/// `None` if there is no such file.
fn read(path: &Path, id: &str) -> Result<Option<Token>, StoreError> {
    let content = match fs::read(path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StoreError::Io { path: path.to_owned(), source }),
    };
    let token: Token =
        serde_json::from_slice(&content).map_err(|source| StoreError::Content { path: path.to_owned(), source })?;
    Ok(Some(Token { id: id.to_owned(), ..token }))
}

fn remove(path: &Path) -> Result<(), StoreError> {
    fs::remove_file(path).map_err(|source| StoreError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_token_is_valid_for_its_uses_and_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(dir.path().join("tokens"));
        let (agent, now) = ("site-a".parse::<AgentId>().unwrap(), SystemTime::now());
        assert_eq!(tokens.list(now).unwrap(), []);
        let credential = tokens.create(&agent, HOUR, 2, now).unwrap();
        let other = TokenCredential::new(&credential.id, &"z".repeat(32)).unwrap();
        assert!(matches!(tokens.use_once(&other, now, |_| SystemTime::UNIX_EPOCH), Err(TokenError::Unknown)));
        assert_eq!(tokens.use_once(&credential, now, |_| SystemTime::UNIX_EPOCH).unwrap(), agent);
        assert_eq!(tokens.list(now).unwrap()[0].uses_left, 1);
        assert_eq!(tokens.use_once(&credential, now, |_| SystemTime::UNIX_EPOCH).unwrap(), agent);
        assert!(matches!(tokens.use_once(&credential, now, |_| SystemTime::UNIX_EPOCH), Err(TokenError::Unknown)));

        // The status neither waits for the lock nor removes anything.
        let lock = tokens.lock().unwrap();
        assert_eq!(tokens.look(100, now).unwrap(), []);
        drop(lock);
        let late = tokens.create(&agent, HOUR, 1, now).unwrap();
        assert!(matches!(tokens.use_once(&late, now + HOUR, |_| SystemTime::UNIX_EPOCH), Err(TokenError::Expired)));
        let deleted = tokens.create(&agent, HOUR, 1, now).unwrap();
        assert!(tokens.delete(&deleted.id).unwrap() && !tokens.delete(&deleted.id).unwrap());
        assert!(matches!(tokens.use_once(&deleted, now, |_| SystemTime::UNIX_EPOCH), Err(TokenError::Unknown)));
        tokens.create(&agent, HOUR, 1, now).unwrap();
        assert_eq!((tokens.look(100, now).unwrap().len(), tokens.look(100, now + HOUR).unwrap().len()), (1, 0));
        assert_eq!(tokens.look(100, now).unwrap()[0].uses_left, 1);
        assert_eq!(tokens.list(now + HOUR).unwrap(), []);
    }

    #[test]
    fn the_files_contain_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(dir.path().to_owned());
        let credential = tokens.create(&"site-a".parse().unwrap(), HOUR, 1, SystemTime::now()).unwrap();
        let content = fs::read_to_string(dir.path().join(format!("{}.json", credential.id))).unwrap();
        assert!(!content.contains(credential.secret()) && content.contains("site-a"), "{content}");
    }

    #[test]
    fn many_at_once_get_no_more_than_the_uses() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(dir.path().to_owned());
        let credential = tokens.create(&"site-a".parse().unwrap(), HOUR, 3, SystemTime::now()).unwrap();
        let got = std::thread::scope(|scope| {
            let uses: Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| tokens.use_once(&credential, SystemTime::now(), |_| SystemTime::UNIX_EPOCH).is_ok())
                })
                .collect();
            uses.into_iter().map(|one| one.join().unwrap()).filter(|ok| *ok).count()
        });
        assert_eq!(got, 3);
    }
}
