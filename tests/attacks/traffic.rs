//! The requests and connections of the attacker's process.

use bytes::Bytes;

/// A user of the attacker's cluster without administrator rights.
pub(crate) const USER: &str = "mallory";

/// The placeholder for the number of a request in its path and body.
pub(crate) const NUMBER: &str = "NUMBER";

/// The placeholder for the latest resource version in the path of a watch.
pub(crate) const VERSION: &str = "VERSION";

/// The collection that most requests use.
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The work of the attacker's process. Rates are per second.
pub(crate) enum Traffic {
    /// Sends these requests in turns, and reads the responses.
    Requests(u32, Vec<RequestTemplate>),
    /// Sends one request repeatedly without ending its body, and reads no more of the response than this window.
    Held { rate: u32, window: u32, sent: RequestTemplate },
    /// Opens watches from the latest version, up to a maximum number, and does not read them. Also sends requests that
    /// change the watched objects, in turns.
    Watched { rate: u32, max_watches: usize, watch: RequestTemplate, changes: (u32, Vec<RequestTemplate>) },
    /// Sends requests, and resets each of them at once.
    Resets(u32),
    /// Opens connections without requests. Closes them at once unless `keep_open` is set.
    Connections { rate: u32, keep_open: bool },
}

/// A request of the attacker. Its path and body can contain placeholders.
#[derive(Clone)]
pub(crate) struct RequestTemplate {
    pub(crate) credential: Credential,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) media: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Bytes,
}

/// The credentials of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Credential {
    None,
    /// A new invalid token for each request.
    InvalidToken,
    /// The certificate of a user that has only the rights that an attack grants.
    User,
    /// The certificate of the administrator of the attacker's virtual cluster.
    Admin,
}

// === impl RequestTemplate ===

impl RequestTemplate {
    pub(crate) fn new(credential: Credential, method: &'static str, path: &str) -> Self {
        Self { credential, method, path: path.to_owned(), media: "", accept: "", body: Bytes::new() }
    }

    pub(crate) fn with(self, media: &'static str, body: impl Into<Bytes>) -> Self {
        Self { media, body: body.into(), ..self }
    }

    pub(crate) fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    /// A request without unusual cost.
    pub(crate) fn harmless() -> Self {
        Self::new(Credential::Admin, "GET", &format!("{CONFIG_MAPS}/kube-root-ca.crt"))
    }
}
