//! The attacks: what is made before, and what is sent.
//!
//! Reading order: [`Attack`], [`Traffic`], [`Sent`], [`streams`] (what is never finished, or never read), [`bodies`] (what
//! costs more than it weighs), [`objects`] (what is stored, and what is made of it).

mod bodies;
mod objects;
mod streams;

use bytes::Bytes;

use crate::attacker::USER;
use crate::stage::Stage;

pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What the attacker's administrator makes before. Its memory counts, its time does not.
    pub(crate) prepare: fn(&Stage) -> anyhow::Result<()>,
    pub(crate) traffic: fn() -> Traffic,
}

/// What the attacker's process does, so many times a second.
pub(crate) enum Traffic {
    /// Sends these requests by turns, and reads the answers.
    Requests(u32, Vec<Sent>),
    /// Sends one request again and again, does not end its body, and reads no answer beyond this window.
    Held { rate: u32, window: u32, sent: Sent },
    /// Sends requests, and resets their streams at once.
    Resets(u32),
    /// Opens connections on which nothing is asked. Unless they are kept, it ends them at once.
    Connections { rate: u32, kept: bool },
}

/// A request of the attacker's.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) who: Who,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) media: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Bytes,
}

/// Whose credentials it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    Nobody,
    /// A token that is none, another one each time.
    Token,
    /// Somebody with a certificate, who has no rights of their own unless they are given some.
    User,
    Admin,
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Every attack. Those that leave most on the host come last.
pub(crate) fn all() -> impl Iterator<Item = &'static Attack> {
    [streams::ATTACKS, bodies::ATTACKS, objects::ATTACKS].into_iter().flatten()
}

// === impl Attack ===

impl Attack {
    const fn new(name: &'static str, about: &'static str, traffic: fn() -> Traffic) -> Self {
        Self { name, about, prepare: |_| Ok(()), traffic }
    }

    const fn after(self, prepare: fn(&Stage) -> anyhow::Result<()>) -> Self {
        Self { prepare, ..self }
    }
}

// === impl Sent ===

impl Sent {
    fn new(who: Who, method: &'static str, path: &str) -> Self {
        Self { who, method, path: path.to_owned(), media: "", accept: "", body: Bytes::new() }
    }

    fn with(self, media: &'static str, body: impl Into<Bytes>) -> Self {
        Self { media, body: body.into(), ..self }
    }

    fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    /// What anybody may ask for.
    pub(crate) fn harmless() -> Self {
        Self::new(Who::Admin, "GET", &format!("{CONFIG_MAPS}/kube-root-ca.crt"))
    }
}

/// A JSON array of this value, so many times.
fn elements(value: &str, count: usize) -> String {
    format!("[{}]", vec![value; count].join(","))
}

/// `count` texts, no two of them alike.
fn texts(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

/// Gives a role to the user.
fn bind(stage: &Stage, role: &str) -> anyhow::Result<()> {
    let arguments = ["create", "clusterrolebinding", "user", "--clusterrole", role, "--user", USER];
    stage.admin.ok(&arguments).map(drop)
}
