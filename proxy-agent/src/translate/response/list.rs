//! A list that is streamed to a client.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rewrite::sink::Coalesce;
use rewrite::view::{ListStream, StreamError};

use virtual_cluster::share::large_objects::{LARGE_LENGTH, LargeObjectLimits};

/// A list, of which large objects are mapped in turn.
pub(super) struct List {
    /// `None` while another thread works on it.
    engine: Option<ListStream>,
    large_objects: Arc<LargeObjectLimits>,
    /// The bytes of the host that have not been mapped yet.
    chunk: Bytes,
    apart: Option<Apart>,
}

/// The work of another thread: it returns the list, and what it has written.
type Apart = Pin<Box<dyn Future<Output = (ListStream, Result<Vec<Bytes>, StreamError>)> + Send>>;

// === impl List ===

impl List {
    pub(super) fn new(list: ListStream, large_objects: Arc<LargeObjectLimits>) -> Self {
        Self { engine: Some(list.deferring(LARGE_LENGTH)), large_objects, chunk: Bytes::new(), apart: None }
    }

    /// Takes a chunk of the host, which [`poll`](Self::poll) maps.
    pub(super) fn hold(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// Whether there is a chunk that has not been mapped.
    pub(super) fn is_holding(&self) -> bool {
        self.apart.is_some() || !self.chunk.is_empty()
    }

    /// Maps the pending chunk. While another thread maps a large object, what precedes it may be in `shown` already.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Coalesce,
        shown: &mut VecDeque<Bytes>,
    ) -> Poll<Result<(), StreamError>> {
        loop {
            if let Some(apart) = &mut self.apart {
                let (list, pieces) = ready!(apart.as_mut().poll(cx));
                (self.engine, self.apart) = (Some(list), None);
                shown.extend(pieces?);
            }
            self.apart = self.map(out)?;
            shown.extend(out.drain());
            if self.apart.is_none() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Ends the list: there are no more chunks.
    pub(super) fn finish(&mut self) -> Result<(), StreamError> {
        self.engine.as_mut().map_or(Ok(()), ListStream::finish)
    }

    /// Maps the pending chunk up to an object on which this thread must not work.
    fn map(&mut self, out: &mut Coalesce) -> Result<Option<Apart>, StreamError> {
        // In parts of this length, only an object that spans several parts waits for its turn.
        while !self.chunk.is_empty() {
            let Some(list) = &mut self.engine else { return Ok(None) };
            let part = self.chunk.split_to(self.chunk.len().min(LARGE_LENGTH));
            list.push(&part, out)?;
            match list.waiting() {
                None => {}
                Some(length) if LargeObjectLimits::is_for_another_thread(length) => {
                    return Ok(self.engine.take().map(|list| resume(list, &self.large_objects)));
                }
                Some(_) => self.large_objects.run(|| list.resume(out))?,
            }
        }
        Ok(None)
    }
}

fn resume(mut list: ListStream, large_objects: &LargeObjectLimits) -> Apart {
    Box::pin(large_objects.apart(move || {
        let mut out = Coalesce::new();
        let resumed = list.resume(&mut out);
        (list, resumed.map(|()| out.drain().collect()))
    }))
}
