//! What requests are served from, and what the controllers work on.

use std::net::SocketAddr;
use std::sync::Arc;

use ops::drain::Tasks;
use ops::tls::ClientCa;

use crate::auth::tokens::Tokens;
use crate::store::Store;

/// The state of a server. Its values do not change; the store and the tokens have their own locks.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) store: Arc<Store>,
    pub(crate) tokens: Tokens,
    pub(crate) tasks: Tasks,
    /// The content of `kube-root-ca.crt`, in PEM.
    pub(crate) serving_ca: String,
    /// The address in legacy discovery.
    pub(crate) address: SocketAddr,
    /// The authority that signs client certificates.
    pub(crate) client_ca: ClientCa,
}

// === impl Api ===

impl Api {
    pub(crate) fn new(client_ca: ClientCa, serving_ca: String, address: SocketAddr, tasks: Tasks) -> Self {
        let store = Arc::new(Store::new());
        Self { tokens: Tokens::new(Arc::clone(&store)), store, tasks, serving_ca, address, client_ca }
    }
}
