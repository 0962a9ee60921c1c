//! A list that is streamed to a client.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rewrite::sink::Coalesce;
use rewrite::view::{ExistingNamespaces, ListStream, StreamError};

use super::namespaces::{ListNamespaces, NamespaceError};
use virtual_cluster::share::large_objects::{LARGE_LENGTH, LargeObjectLimits};

/// A list, of which large objects are mapped in turn.
pub(super) struct List {
    /// `None` while another thread works on it.
    engine: Option<ListStream>,
    large_objects: Arc<LargeObjectLimits>,
    /// The bytes of the host that have not been mapped yet.
    chunk: Bytes,
    apart: Option<Apart>,
    /// `None` while they look for a namespace, or if no object waits.
    namespaces: Option<ListNamespaces>,
    finding: Option<Finding>,
}

/// The work of another thread: it returns the list, and what it has written.
type Apart = Pin<Box<dyn Future<Output = (ListStream, Result<Vec<Bytes>, StreamError>)> + Send>>;

/// The wait for a namespace.
type Finding = Pin<Box<dyn Future<Output = (ListNamespaces, Result<Arc<ExistingNamespaces>, NamespaceError>)> + Send>>;

/// Why a list must end early.
pub(super) enum ListError {
    /// The agent could not parse the host's bytes.
    Stream(StreamError),
    /// A namespace did not become known.
    Namespace(NamespaceError),
}

// === impl List ===

impl List {
    pub(super) fn new(list: ListStream, large_objects: Arc<LargeObjectLimits>) -> Self {
        let engine = Some(list.deferring(LARGE_LENGTH));
        Self { engine, large_objects, chunk: Bytes::new(), apart: None, namespaces: None, finding: None }
    }

    /// Lets objects wait for their namespaces.
    pub(super) fn awaiting(mut self, namespaces: ListNamespaces) -> Self {
        self.engine = self.engine.map(ListStream::awaiting_namespaces);
        self.namespaces = Some(namespaces);
        self
    }

    /// Takes a chunk of the host, which [`poll`](Self::poll) maps.
    pub(super) fn hold(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// Whether there is a chunk that has not been mapped.
    pub(super) fn is_holding(&self) -> bool {
        self.apart.is_some() || self.finding.is_some() || !self.chunk.is_empty()
    }

    /// Maps the pending chunk. While another thread maps a large object, or while an object waits for its namespace, what
    /// precedes it may be in `shown` already.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Coalesce,
        shown: &mut VecDeque<Bytes>,
    ) -> Poll<Result<(), ListError>> {
        loop {
            if let Some(apart) = &mut self.apart {
                let (list, pieces) = ready!(apart.as_mut().poll(cx));
                (self.engine, self.apart) = (Some(list), None);
                shown.extend(pieces.map_err(ListError::Stream)?);
            }
            if let Some(finding) = &mut self.finding {
                let (namespaces, found) = ready!(finding.as_mut().poll(cx));
                self.finding = None;
                if let Some(list) = &mut self.engine {
                    list.await_only(found.map_err(ListError::Namespace)?);
                    list.remap(namespaces.mapping());
                }
                self.namespaces = Some(namespaces);
            }
            self.map(out).map_err(ListError::Stream)?;
            shown.extend(out.drain());
            if self.apart.is_none() && self.finding.is_none() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Ends the list: there are no more chunks.
    pub(super) fn finish(&mut self) -> Result<(), StreamError> {
        self.engine.as_mut().map_or(Ok(()), ListStream::finish)
    }

    /// Maps the pending chunk up to an object on which this thread must not work, or that waits for its namespace.
    fn map(&mut self, out: &mut Coalesce) -> Result<(), StreamError> {
        loop {
            let Some(list) = &mut self.engine else { return Ok(()) };
            if let Some(name) = list.unknown()
                && let Some(mut namespaces) = self.namespaces.take()
            {
                let name = Box::<[u8]>::from(name);
                self.finding = Some(Box::pin(async move {
                    let found = namespaces.find(&name).await;
                    (namespaces, found)
                }));
                return Ok(());
            }
            match list.waiting() {
                None if self.chunk.is_empty() => return Ok(()),
                None => {
                    // In parts of this length, only an object that spans several parts waits for its turn.
                    let part = self.chunk.split_to(self.chunk.len().min(LARGE_LENGTH));
                    list.push(&part, out)?;
                }
                Some(length) if LargeObjectLimits::is_for_another_thread(length) => {
                    self.apart = self.engine.take().map(|list| resume(list, &self.large_objects));
                    return Ok(());
                }
                Some(length) if length > LARGE_LENGTH => self.large_objects.run(|| list.resume(out))?,
                // It has waited for its namespace.
                Some(_) => list.resume(out)?,
            }
        }
    }
}

fn resume(mut list: ListStream, large_objects: &LargeObjectLimits) -> Apart {
    Box::pin(large_objects.apart(move || {
        let mut out = Coalesce::new();
        let resumed = list.resume(&mut out);
        (list, resumed.map(|()| out.drain().collect()))
    }))
}
