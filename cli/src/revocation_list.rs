//! The file that lists revoked certificates: `revocations` in the configuration of the proxy-server.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, ensure};
use ops::files::{Existing, Secrecy, write};
use proxy_server::config::{Revocation, RevocationList};

/// The file, and what it contains.
pub(crate) struct List {
    path: PathBuf,
    content: RevocationList,
    /// Released when it is closed.
    _lock: File,
}

/// The beginning of the file.
const HEAD: &str = "\
# Certificates that the proxy-server refuses although they are valid. `atoll revoke` adds lines. You can also edit the file: the
# proxy-server reads it again within five seconds. Each line has one of:
#   agent, issuedBefore: the certificates of an agent that begin to be valid before this time
#   cluster, user, issuedBefore: those of a user of a virtual cluster
#   credential: one certificate, by the digest that audit logs of Kubernetes contain (X509SHA256=...)
# A line can be removed when the certificates that it names have expired.
apiVersion: atoll.dev/v1alpha1
kind: Revocations
";

/// A file without revocations.
pub(crate) fn empty() -> String {
    text(&RevocationList::default())
}

/// The newest certificate of an agent or of a user must be valid from this time on, if older ones are revoked.
pub(crate) fn not_before(path: &Path, of: impl Fn(&Revocation) -> bool) -> anyhow::Result<SystemTime> {
    if !path.exists() {
        return Ok(SystemTime::UNIX_EPOCH);
    }
    let list: RevocationList = ops::config::load(path)?;
    let times =
        list.revoked.iter().filter(|revocation| of(revocation)).filter_map(|revocation| revocation.issued_before);
    Ok(times.max().map_or(SystemTime::UNIX_EPOCH, ops::date::Moment::time))
}

/// Each entry is a line, so that people can compare versions of the file.
fn text(list: &RevocationList) -> String {
    if list.revoked.is_empty() {
        return format!("{HEAD}revoked: []\n");
    }
    let mut text = format!("{HEAD}revoked:\n");
    for revocation in &list.revoked {
        // JSON is YAML.
        let line = serde_json::to_string(&**revocation).expect("strings always serialise");
        let _ = writeln!(text, "- {line}");
    }
    text
}

// === impl List ===

impl List {
    /// Reads the file. A missing one has no revocations. Another process waits until this list is written or dropped.
    pub(crate) fn open(path: PathBuf) -> anyhow::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The directory, because the file is replaced.
        let lock = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
        let lock = lock.with_context(|| format!("cannot lock {}", folder.display()))?;
        let content = if path.exists() { ops::config::load(&path)? } else { RevocationList::default() };
        Ok(Self { path, content, _lock: lock })
    }

    /// Adds a revocation, and prints what it means.
    pub(crate) fn add(mut self, revocation: Revocation, meaning: &str, out: &mut dyn Write) -> anyhow::Result<()> {
        self.content.revoked.push(revocation.into());
        let text = text(&self.content);
        let read: RevocationList =
            ops::config::parse(&text, &self.path).context("the proxy-server could not read the new list")?;
        ensure!(read == self.content, "the proxy-server would read another list than {text}");
        write(&self.path, text.as_bytes(), Secrecy::Public, Existing::Replace)
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        writeln!(out, "revoked: {meaning}")?;
        writeln!(
            out,
            "wrote {}; the proxy-server applies it within ten seconds. If you have several, copy the file to each of them \
             under a temporary name, and rename it there.",
            self.path.display()
        )?;
        Ok(())
    }
}
