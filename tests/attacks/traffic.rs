//! The requests and connections of the attacker's process.

use bytes::Bytes;

/// A user of the attacker's cluster without administrator rights.
pub(crate) const USER: &str = "mallory";

/// The placeholder for the number of a request in its path and body.
pub(crate) const NUMBER: &str = "NUMBER";

/// The placeholder for the latest resource version in the path of a watch.
pub(crate) const VERSION: &str = "VERSION";

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

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

// === impl Sent ===

impl Sent {
    pub(crate) fn new(who: Who, method: &'static str, path: &str) -> Self {
        Self { who, method, path: path.to_owned(), media: "", accept: "", body: Bytes::new() }
    }

    pub(crate) fn with(self, media: &'static str, body: impl Into<Bytes>) -> Self {
        Self { media, body: body.into(), ..self }
    }

    pub(crate) fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    /// A request that everybody may send.
    pub(crate) fn harmless() -> Self {
        Self::new(Who::Admin, "GET", &format!("{CONFIG_MAPS}/kube-root-ca.crt"))
    }
}
