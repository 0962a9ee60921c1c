//! The session of a user at an issuer, and the file that keeps it.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ops::date::Moment;
use ops::files::{Existing, Secrecy, write};
use ops::secret::{Secret, sha256};
use serde::{Deserialize, Serialize};

/// A token that ends sooner is renewed: it must not expire on its way to the server.
const MARGIN: Duration = Duration::from_secs(10);

/// The directory below kubectl's cache directory.
const DIRECTORY: &str = "atoll-login";

/// The tokens of a user.
#[derive(Clone, Debug)]
pub(super) struct Session {
    id_token: Secret,
    refresh_token: Option<Secret>,
    expires: Moment,
}

/// The file of one issuer, client and set of scopes. Locked until it is dropped.
#[derive(Debug)]
pub(super) struct Cache {
    path: PathBuf,
    _lock: File,
}

#[derive(Serialize, Deserialize)]
struct Content {
    id_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
}

/// The claims that this command reads. It got the token from the issuer itself, over TLS, so it need not verify the
/// signature (OpenID Connect Core 1.0 section 3.1.3.7). The server does.
#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Audience,
    exp: f64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// kubectl's cache directory.
pub(super) fn default_directory() -> PathBuf {
    std::env::home_dir().unwrap_or_default().join(".kube/cache")
}

fn claims(id_token: &str) -> Option<Claims> {
    let payload = URL_SAFE_NO_PAD.decode(id_token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&payload).ok()
}

// === impl Session ===

impl Session {
    /// A session with tokens from the issuer.
    pub(super) fn new(
        id_token: String,
        refresh_token: Option<String>,
        (issuer, client_id): (&str, &str),
    ) -> anyhow::Result<Self> {
        let claims = claims(&id_token).context("the issuer has returned a malformed ID token")?;
        let is_for_client = match &claims.aud {
            Audience::One(audience) => audience == client_id,
            Audience::Several(audiences) => audiences.iter().any(|audience| audience == client_id),
        };
        ensure!(claims.iss == issuer, "the ID token has the issuer {:?}, and not {issuer:?}", claims.iss);
        ensure!(is_for_client, "the ID token is not for the client {client_id:?}");
        Self::read(Content { id_token, refresh_token }).context("the ID token has no expiry")
    }

    fn read(content: Content) -> Option<Self> {
        let since = Duration::try_from_secs_f64(claims(&content.id_token)?.exp).ok()?;
        let expires = SystemTime::UNIX_EPOCH.checked_add(since)?.into();
        let Content { id_token, refresh_token } = content;
        Some(Self { id_token: id_token.into(), refresh_token: refresh_token.map(Secret::from), expires })
    }

    /// The same session, with the previous refresh token if the issuer has not sent a new one.
    pub(super) fn or_refresh_token(mut self, previous: &Secret) -> Self {
        self.refresh_token.get_or_insert_with(|| previous.clone());
        self
    }

    /// Whether the ID token is valid for some time.
    pub(super) fn is_valid(&self, now: SystemTime) -> bool {
        self.expires.time() > now + MARGIN
    }

    pub(super) fn expires(&self) -> Moment {
        self.expires
    }

    pub(super) fn id_token(&self) -> &str {
        self.id_token.expose()
    }

    pub(super) fn refresh_token(&self) -> Option<&Secret> {
        self.refresh_token.as_ref()
    }
}

/// Refuses a directory of somebody else: it could contain the session of another user.
fn check_private(directory: &Path) -> anyhow::Result<()> {
    let shown = directory.display();
    let found = fs::symlink_metadata(directory).with_context(|| format!("cannot read {shown}"))?;
    let is_own = fs::metadata("/proc/self").map_or(true, |own| own.uid() == found.uid());
    ensure!(
        is_own && found.is_dir() && (found.mode() & 0o777) | 0o700 == 0o700,
        "{shown} is not a directory that only you can use; remove it, or set --cache-dir"
    );
    Ok(())
}

// === impl Cache ===

impl Cache {
    /// Waits until no other command uses the file.
    pub(super) fn lock(directory: &Path, key: &[&str]) -> anyhow::Result<Self> {
        let directory = directory.join(DIRECTORY);
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        created.with_context(|| format!("cannot create {}; set --cache-dir", directory.display()))?;
        check_private(&directory)?;
        let name = sha256(key.join("\n").as_bytes());
        let path = directory.join(format!("{name}.lock"));
        let opened = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = opened.with_context(|| format!("cannot open {}", path.display()))?;
        lock.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(Self { path: directory.join(format!("{name}.json")), _lock: lock })
    }

    /// A file that cannot be read is replaced after the next login.
    pub(super) fn read(&self) -> Option<Session> {
        Session::read(serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?)
    }

    pub(super) fn write(&self, session: &Session) -> anyhow::Result<()> {
        let content = Content {
            id_token: session.id_token().to_owned(),
            refresh_token: session.refresh_token().map(|token| token.expose().to_owned()),
        };
        let Ok(text) = serde_json::to_vec(&content) else { bail!("cannot serialize the session") };
        Ok(write(&self.path, &text, Secrecy::Secret, Existing::Replace)?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::{Value, json};

    use super::*;

    const ISSUER: &str = "https://login.example.com";

    fn token(claims: &Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    fn session(claims: &Value) -> anyhow::Result<Session> {
        Session::new(token(claims), Some("refresh".to_owned()), (ISSUER, "atoll"))
    }

    #[test]
    fn a_token_for_another_client_is_an_error() {
        for (claims, why) in [
            (json!({"iss": "https://other.example", "aud": "atoll", "exp": 1}), "the issuer"),
            (json!({"iss": ISSUER, "aud": ["other"], "exp": 1}), "not for the client"),
            (json!({"iss": ISSUER, "aud": "atoll"}), "malformed"),
        ] {
            let error = format!("{:#}", session(&claims).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
        let valid = session(&json!({"iss": ISSUER, "aud": ["x", "atoll"], "exp": 1000.5})).unwrap();
        assert_eq!(valid.expires().to_string(), "1970-01-01T00:16:40Z");
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(valid.is_valid(at(989)) && !valid.is_valid(at(990)));
    }

    #[test]
    fn only_the_owner_can_read_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::lock(directory.path(), &[ISSUER, "atoll", ""]).unwrap();
        assert!(cache.read().is_none());
        cache.write(&session(&json!({"iss": ISSUER, "aud": "atoll", "exp": 1})).unwrap()).unwrap();
        assert_eq!(cache.read().unwrap().refresh_token().unwrap().expose(), "refresh");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&cache.path), mode(cache.path.parent().unwrap())), (0o600, 0o700));
        fs::write(&cache.path, "{").unwrap();
        assert!(cache.read().is_none());
        drop(cache);
        let other = Cache::lock(directory.path(), &[ISSUER, "atoll", "email"]).unwrap();
        assert!(other.read().is_none(), "other scopes, so another session");
    }

    #[test]
    fn a_refresh_token_stays_unless_it_is_replaced() {
        let claims = json!({"iss": ISSUER, "aud": "atoll", "exp": 1});
        let kept = Session::new(token(&claims), None, (ISSUER, "atoll")).unwrap().or_refresh_token(&"old".into());
        assert_eq!(kept.refresh_token().unwrap().expose(), "old");
        assert_eq!(
            session(&claims).unwrap().or_refresh_token(&"old".into()).refresh_token().unwrap().expose(),
            "refresh"
        );
    }
}
