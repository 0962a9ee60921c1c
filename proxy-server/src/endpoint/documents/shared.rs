//! The store of all connections.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use protocol::digest::Digest;

use super::key::Key;
use super::store::{Entry, Store};
use super::stored::{self, StoredBody};
use crate::config::Cluster;

/// All documents.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<Store>);

/// A document that was stored when its digest was named to the agent.
#[derive(Clone, Debug)]
pub(crate) struct Document(Entry);

/// A document that arrives. If it is dropped before its end, nothing is stored.
#[derive(Debug)]
pub(crate) struct Arriving {
    documents: Arc<Documents>,
    cluster: Arc<Cluster>,
    number: u64,
}

// === impl Documents ===

impl Documents {
    /// The last document for this key. A cluster that other agents serve has other documents.
    pub(crate) fn get(&self, cluster: &Cluster, key: &Key) -> Option<Document> {
        self.lock().get(cluster, key).map(Document)
    }

    /// Stores a document while it arrives. Another response for the same key that still arrives is not stored any more.
    pub(crate) fn begin(self: &Arc<Self>, cluster: &Arc<Cluster>, key: Key) -> Arriving {
        let number = self.lock().begin(cluster, key);
        Arriving { documents: Arc::clone(self), cluster: Arc::clone(cluster), number }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Document ===

impl Document {
    /// The digest of its body.
    pub(crate) fn digest(&self) -> &Digest {
        &self.0.digest
    }

    /// The document as a body. It does not keep the document: a client that does not read must not.
    pub(crate) fn into_body(self) -> StoredBody {
        stored::body(Arc::downgrade(&self.0.blocks), self.0.length)
    }
}

// === impl Arriving ===

impl Arriving {
    /// Adds compressed bytes. Returns whether there was space.
    pub(super) fn push(&self, bytes: &Bytes) -> bool {
        self.documents.lock().push(&self.cluster.name, self.number, bytes)
    }

    /// The document is complete.
    pub(super) fn end(self, digest: Digest, length: u64) {
        self.documents.lock().end(&self.cluster.name, self.number, digest, length);
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.documents.lock().abandon(&self.cluster.name, self.number);
    }
}
