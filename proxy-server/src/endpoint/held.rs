//! The documents that this process keeps: discovery, OpenAPI and the version, so that they do not cross a slow network again and again
//! ([`protocol::digest`]).
//!
//! An agent decides about each request, so a document is only a way to save bytes: it is sent to a client only if the agent has just made
//! the same one for this request. Documents that arrive uncompressed are not kept, because their network is fast.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use protocol::ClusterName;
use protocol::blocks::{Encoder, Histories};
use protocol::digest::{Digest, Hasher, MAX_HELD};
use tunnel::encoded::Decoded;

/// The maximum size of all documents, compressed, in bytes: those of about a thousand clusters.
const MAX_TOTAL: usize = 32 * 1024 * 1024;

/// The maximum number of documents of one cluster. Clients can request a document in several media types.
const MAX_OF_CLUSTER: usize = 64;

/// The maximum length of a target, and of a media type.
const MAX_KEY: usize = 512;

/// All documents.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<Documents>);

#[derive(Debug, Default)]
struct Documents {
    by_key: HashMap<Key, Entry>,
    size: usize,
    /// The number of uses of all documents.
    uses: u64,
}

/// What a client requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    cluster: ClusterName,
    target: Box<str>,
    accept: Option<HeaderValue>,
}

#[derive(Debug)]
struct Entry {
    document: Document,
    /// The number of uses of all documents at its last use.
    used: u64,
}

/// A document.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) digest: Digest,
    /// Compressed.
    blocks: Bytes,
    length: u64,
}

/// A document that arrives.
#[derive(Debug)]
pub(super) struct Arriving {
    key: Key,
    held: Arc<Held>,
    hasher: Hasher,
    encoder: Encoder,
    blocks: Vec<u8>,
    length: usize,
}

// === impl Key ===

impl Key {
    /// That of a request for a document. `None` for other requests.
    pub(super) fn of<B>(cluster: &ClusterName, request: &Request<B>) -> Option<Self> {
        let (target, headers) = (request.uri().path_and_query()?.as_str(), request.headers());
        let is_document = request.method() == Method::GET && is_document(request.uri().path());
        let is_conditional = headers.contains_key(header::IF_NONE_MATCH) || headers.contains_key(header::RANGE);
        let mut accepts = headers.get_all(header::ACCEPT).iter();
        let accept = accepts.next();
        let is_short = target.len() <= MAX_KEY && accept.is_none_or(|accept| accept.len() <= MAX_KEY);
        (is_document && !is_conditional && accepts.next().is_none() && is_short).then(|| Self {
            cluster: cluster.clone(),
            target: target.into(),
            accept: accept.cloned(),
        })
    }
}

/// Whether a path is one of `/api`, `/api/v1`, `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION`, `/openapi/...` and `/version`.
fn is_document(path: &str) -> bool {
    let mut segments = path.trim_matches('/').split('/');
    match segments.next() {
        Some("api") => segments.count() <= 1,
        Some("apis") => segments.count() <= 2,
        Some("openapi") => true,
        Some("version") => segments.next().is_none(),
        _ => false,
    }
}

// === impl Held ===

impl Held {
    /// The last document for this key.
    pub(super) fn get(&self, key: &Key) -> Option<Document> {
        let mut documents = self.lock();
        documents.uses += 1;
        let uses = documents.uses;
        let entry = documents.by_key.get_mut(key)?;
        entry.used = uses;
        Some(entry.document.clone())
    }

    fn put(&self, key: Key, document: Document) {
        let mut documents = self.lock();
        documents.remove(&key);
        let of_cluster = documents.by_key.keys().filter(|other| other.cluster == key.cluster).count();
        if of_cluster >= MAX_OF_CLUSTER {
            documents.remove_oldest(|other| other.cluster == key.cluster);
        }
        documents.uses += 1;
        documents.size += document.blocks.len();
        let used = documents.uses;
        documents.by_key.insert(key, Entry { document, used });
        while documents.size > MAX_TOTAL {
            documents.remove_oldest(|_| true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Documents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Documents ===

impl Documents {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.by_key.remove(key) {
            self.size -= entry.document.blocks.len();
        }
    }

    /// Removes the document whose last use is the longest ago.
    fn remove_oldest(&mut self, is_meant: impl Fn(&Key) -> bool) {
        let meant = self.by_key.iter().filter(|(key, _)| is_meant(key));
        if let Some(key) = meant.min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone()) {
            self.remove(&key);
        }
    }
}

// === impl Document ===

impl Document {
    /// The document as a body.
    pub(super) fn body(self) -> Decoded<Full<Bytes>> {
        Decoded::new(Full::new(self.blocks), &Histories::unlimited(), Some(self.length))
    }
}

// === impl Arriving ===

impl Arriving {
    pub(super) fn new(key: Key, held: Arc<Held>) -> Self {
        let encoder = Encoder::new(&Histories::unlimited());
        Self { key, held, hasher: Hasher::default(), encoder, blocks: Vec::new(), length: 0 }
    }

    /// Adds the next bytes. Returns whether the document is not too long.
    fn push(&mut self, bytes: &Bytes) -> bool {
        self.length += bytes.len();
        if self.length > MAX_HELD {
            return false;
        }
        self.hasher.update(bytes);
        self.encoder.push(bytes.clone());
        while let Some(block) = self.encoder.encode() {
            self.blocks.extend_from_slice(&block);
        }
        true
    }

    /// Keeps the document, which is complete.
    fn end(self) {
        let Self { key, held, hasher, blocks, length, .. } = self;
        held.put(key, Document { digest: hasher.finish(), blocks: blocks.into(), length: length as u64 });
    }
}

/// A body that is kept when it has arrived.
#[derive(Debug)]
pub(super) struct Keeping<B> {
    body: B,
    /// `None` if the body is not kept, or not any more.
    arriving: Option<Box<Arriving>>,
}

// === impl Keeping ===

impl<B> Keeping<B> {
    pub(super) fn new(body: B, arriving: Option<Arriving>) -> Self {
        Self { body, arriving: arriving.map(Box::new) }
    }

    pub(super) fn get_mut(&mut self) -> &mut B {
        &mut self.body
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Keeping<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Self { body, arriving } = self.get_mut();
        let polled = Pin::new(&mut *body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(kept), Some(bytes)) = (arriving.as_mut(), frame.data_ref())
                    && !kept.push(bytes)
                {
                    *arriving = None;
                }
                // Whoever reads the body may not ask for its end.
                if body.is_end_stream()
                    && let Some(arriving) = arriving.take()
                {
                    arriving.end();
                }
            }
            Poll::Ready(None) => {
                if let Some(arriving) = arriving.take() {
                    arriving.end();
                }
            }
            Poll::Ready(Some(Err(_))) => *arriving = None,
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn key(cluster: &str, target: &str) -> Option<Key> {
        Key::of(&cluster.parse().unwrap(), &Request::get(target).header("accept", "application/json").body(()).unwrap())
    }

    fn document(length: usize) -> Document {
        Document { digest: Digest::of(b""), blocks: vec![0; length].into(), length: 1 }
    }

    #[test]
    fn only_documents_are_kept() {
        for target in [
            "/version",
            "/api",
            "/api/v1",
            "/apis",
            "/apis?timeout=32s",
            "/apis/apps/v1",
            "/openapi/v3/apis/apps/v1?hash=A",
        ] {
            assert!(key("a", target).is_some(), "{target}");
        }
        for target in ["/", "/readyz", "/versions", "/api/v1/pods", "/apis/apps/v1/deployments", "/apidocs"] {
            assert!(key("a", target).is_none(), "{target}");
        }
        let conditional = Request::get("/apis").header("if-none-match", "\"1\"").body(()).unwrap();
        assert!(Key::of(&"a".parse().unwrap(), &conditional).is_none());
    }

    #[tokio::test]
    async fn a_body_is_kept_when_it_is_complete() {
        let held = Arc::new(Held::default());
        let (key, text) = (key("a", "/apis").unwrap(), Bytes::from("a document ".repeat(20_000)));
        let arriving = || Some(Arriving::new(key.clone(), Arc::clone(&held)));
        let body = Keeping::new(Full::new(text.clone()), arriving());
        assert!(held.get(&key).is_none());
        assert_eq!(body.collect().await.unwrap().to_bytes(), text);
        let document = held.get(&key).unwrap();
        assert_eq!(document.digest, Digest::of(&text));
        assert!(document.blocks.len() < text.len() / 20, "{}", document.blocks.len());
        assert_eq!(document.body().collect().await.unwrap().to_bytes(), text);

        let long = Bytes::from(vec![b' '; MAX_HELD + 1]);
        Keeping::new(Full::new(long), arriving()).collect().await.unwrap();
        assert_eq!(held.get(&key).unwrap().digest, Digest::of(&text));
    }

    #[test]
    fn the_least_recently_used_documents_leave() {
        let held = Held::default();
        let (first, second) = (key("a", "/apis?0").unwrap(), key("a", "/apis?1").unwrap());
        for number in 0..MAX_OF_CLUSTER {
            held.put(key("a", &format!("/apis?{number}")).unwrap(), document(1));
        }
        assert!(held.get(&first).is_some());
        held.put(key("a", "/api").unwrap(), document(1));
        assert!(held.get(&first).is_some() && held.get(&second).is_none());
        held.put(key("b", "/api").unwrap(), document(MAX_TOTAL - 1));
        let left = held.lock();
        assert_eq!((left.by_key.len(), left.size), (2, MAX_TOTAL));
    }
}
