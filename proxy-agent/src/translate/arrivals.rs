//! Events in namespaces that the index does not know yet.
//!
//! A namespace is created before its objects, but their events come from different watches, and the agent's own watch
//! of namespaces may be the later one. If an event were left out because its namespace has no virtual name yet, the
//! client's cache would lack the object for ever. So a chunk that names an unknown namespace waits a moment for the
//! index.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use kube_wire::watch::ProtobufFrames;
use memchr::memmem;
use rewrite::protobuf::event_namespace;
use rewrite::view::DEFAULT_ITEM_LIMIT;
use rewrite::{Mapping, VirtualNamespace};
use tokio::time::{Instant, Sleep, sleep};

use virtual_cluster::clusters::VirtualCluster;

/// The interval between checks of the index.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// The maximum wait of a chunk. A name of a namespace that never exists, such as in a reference, costs this time once.
const ARRIVAL_TIMEOUT: Duration = Duration::from_millis(500);
/// The maximum number of such names that one watch remembers.
const IN_VAIN: usize = 256;
/// The text before the name of a namespace, in every namespaced object and in every Namespace.
const MARKS: [&[u8]; 2] = [br#""namespace":""#, br#""kubernetes.io/metadata.name":""#];
/// The maximum length of a mark and a name together, which the end of a chunk may divide.
const OVERLAP: usize = 32 + 63;

/// Delays each chunk of one watch until its names are known.
pub(crate) struct Arrivals {
    cluster: Arc<VirtualCluster>,
    /// The namespace that the request names, which need not exist.
    asked: Option<VirtualNamespace>,
    form: Form,
    in_vain: HashSet<Box<[u8]>>,
    held: Option<Held>,
}

/// How to find names in chunks.
enum Form {
    /// By the text before them. The value is the end of the last chunk.
    Json(Vec<u8>),
    /// In the objects of whole events.
    Protobuf(ProtobufFrames),
}

struct Held {
    chunk: Bytes,
    unknown: Vec<Box<[u8]>>,
    until: Instant,
    pause: Pin<Box<Sleep>>,
}

// === impl Arrivals ===

impl Arrivals {
    pub(crate) fn new(cluster: Arc<VirtualCluster>, asked: Option<VirtualNamespace>) -> Self {
        Self { cluster, asked, form: Form::Json(Vec::new()), in_vain: HashSet::new(), held: None }
    }

    /// The same for a watch in protobuf.
    pub(crate) fn in_protobuf(self) -> Self {
        Self { form: Form::Protobuf(ProtobufFrames::new(DEFAULT_ITEM_LIMIT)), ..self }
    }

    /// The current names.
    pub(crate) fn mapping(&self) -> Mapping {
        let mapping = self.cluster.mapping();
        match &self.asked {
            Some(asked) => mapping.asking_for(asked.clone()),
            None => mapping,
        }
    }

    /// The cluster whose names are looked up.
    pub(crate) fn cluster(&self) -> &VirtualCluster {
        &self.cluster
    }

    /// The bytes in memory of events whose names have not been looked up.
    pub(crate) fn held(&self) -> usize {
        match &self.form {
            Form::Json(tail) => tail.len(),
            Form::Protobuf(frames) => frames.held(),
        }
    }

    /// Whether a chunk waits.
    pub(crate) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Takes a chunk, which [`Arrivals::poll`] returns.
    pub(crate) fn hold(&mut self, chunk: Bytes) {
        let unknown = self.unknown_in(&chunk);
        let now = Instant::now();
        self.held = Some(Held { chunk, unknown, until: now + ARRIVAL_TIMEOUT, pause: Box::pin(sleep(RETRY_INTERVAL)) });
    }

    /// The chunk, when its names are known or the maximum wait is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(mut held) = self.held.take() else { return Poll::Ready(None) };
        loop {
            let mapping = self.cluster.mapping();
            held.unknown.retain(|name| !mapping.knows(name));
            if held.unknown.is_empty() {
                return Poll::Ready(Some(held.chunk));
            }
            if Instant::now() >= held.until {
                if self.in_vain.len() < IN_VAIN {
                    self.in_vain.extend(held.unknown);
                }
                return Poll::Ready(Some(held.chunk));
            }
            if held.pause.as_mut().poll(cx).is_pending() {
                self.held = Some(held);
                return Poll::Pending;
            }
            held.pause.as_mut().reset(Instant::now() + RETRY_INTERVAL);
        }
    }

    /// The names in a chunk, and across its beginning, that the index does not know.
    fn unknown_in(&mut self, chunk: &[u8]) -> Vec<Box<[u8]>> {
        let mapping = self.cluster.mapping();
        let mut unknown: Vec<Box<[u8]>> = Vec::new();
        let in_vain = &self.in_vain;
        self.form.names_in(chunk, |name| {
            let known = name.is_empty() || mapping.knows(name) || in_vain.contains(name);
            if !known && !unknown.iter().any(|other| &**other == name) {
                unknown.push(name.into());
            }
        });
        unknown
    }
}

// === impl Form ===

impl Form {
    /// Calls `found` for every name of a namespace, perhaps more than once.
    fn names_in(&mut self, chunk: &[u8], mut found: impl FnMut(&[u8])) {
        match self {
            Self::Json(tail) => {
                let mut seam = std::mem::take(tail);
                seam.extend_from_slice(&chunk[..chunk.len().min(OVERLAP)]);
                for text in [&seam[..], chunk] {
                    for mark in MARKS {
                        for at in memmem::find_iter(text, mark) {
                            let name = &text[at + mark.len()..];
                            let Some(end) = memchr::memchr(b'"', &name[..name.len().min(64)]) else { continue };
                            found(&name[..end]);
                        }
                    }
                }
                *tail = chunk[chunk.len().saturating_sub(OVERLAP)..].to_vec();
            }
            Self::Protobuf(frames) => {
                // The code that maps the frames returns the error.
                if frames.push(chunk).is_err() {
                    return;
                }
                while let Ok(Some(frame)) = frames.next_frame() {
                    if let Some(name) = event_namespace(frame) {
                        found(name);
                    }
                }
            }
        }
    }
}
