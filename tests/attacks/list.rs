//! The attacks: their preparation, and the requests that they send.
//!
//! Reading order: [`Attack`], [`Traffic`], [`Sent`], [`streams`] (requests that never end, or are never read),
//! [`bodies`] (requests that cost more than their length suggests), [`objects`] (objects that are stored, and requests
//! for them).

mod bodies;
mod objects;
mod streams;

use bytes::Bytes;

use crate::attacker::USER;
use crate::stage::Stage;

pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What the attacker's administrator creates before the attack. Its memory counts, but its time does not.
    pub(crate) prepare: fn(&Stage) -> anyhow::Result<()>,
    pub(crate) traffic: fn() -> Traffic,
}

/// What the attacker's process does, with its rate per second.
pub(crate) enum Traffic {
    /// Sends these requests in turns, and reads the responses.
    Requests(u32, Vec<Sent>),
    /// Sends one request repeatedly, without ending its body, and reads no more of the response than this window.
    Held { rate: u32, window: u32, sent: Sent },
    /// Opens watches from the latest version until there are so many, reads none of them, and sends requests by turns that
    /// change what they show.
    Watched { rate: u32, most: usize, watch: Sent, changes: (u32, Vec<Sent>) },
    /// Sends requests, and resets each of them at once.
    Resets(u32),
    /// Opens connections without requests. Closes them at once unless they are kept.
    Connections { rate: u32, kept: bool },
}

/// A request of the attacker.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) who: Who,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) media: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Bytes,
}

/// The credentials of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    Nobody,
    /// An invalid token, a new one each time.
    Token,
    /// A certificate of a user that has only the rights that an attack grants it.
    User,
    Admin,
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// All attacks. Those that leave most objects on the host come last.
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
    pub(crate) fn new(who: Who, method: &'static str, path: &str) -> Self {
        Self { who, method, path: path.to_owned(), media: "", accept: "", body: Bytes::new() }
    }

    fn with(self, media: &'static str, body: impl Into<Bytes>) -> Self {
        Self { media, body: body.into(), ..self }
    }

    fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    /// A request that everybody may send.
    pub(crate) fn harmless() -> Self {
        Self::new(Who::Admin, "GET", &format!("{CONFIG_MAPS}/kube-root-ca.crt"))
    }
}

/// A JSON array of `count` times this value.
fn elements(value: &str, count: usize) -> String {
    format!("[{}]", vec![value; count].join(","))
}

/// `count` different texts.
fn texts(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

/// Gives a role to the user.
fn bind(stage: &Stage, role: &str) -> anyhow::Result<()> {
    let arguments = ["create", "clusterrolebinding", "user", "--clusterrole", role, "--user", USER];
    stage.admin.ok(&arguments).map(drop)
}
