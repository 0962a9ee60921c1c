//! Lists in protobuf, which arrive in chunks.

use std::sync::Arc;

use bytes::Bytes;

use super::error::StreamError;
use super::filter::Filter;
use super::item_waits::ExistingNamespaces;
use super::protobuf::List;
use super::whole::View;
use crate::{Mapping, Program};

/// Shows a list that arrives in chunks, once it is complete.
#[derive(Debug)]
pub struct ProtoListStream(List);

// === impl ProtoListStream ===

impl ProtoListStream {
    /// Shows the items of one list that pass `filter`, each by `program`.
    pub fn new(view: View, program: Program, filter: Filter) -> Self {
        Self(List::new(view.into_settings(), program, filter))
    }

    /// Replaces `metadata.continue`, which holds a name of the host (`continueToken` in apiserver's continue.go).
    #[must_use]
    pub fn sealing(mut self, seal: impl FnMut(&str) -> String + Send + 'static) -> Self {
        self.0.seal = Box::new(seal);
        self
    }

    /// The host selects exactly the visible objects, so its number of remaining items is correct.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.0.counted = true;
        self
    }

    /// Allows `item` bytes for one item and `list` bytes for all that are shown, instead of
    /// [`DEFAULT_ITEM_LIMIT`](super::DEFAULT_ITEM_LIMIT) and [`DEFAULT_LIST_LIMIT`](super::DEFAULT_LIST_LIMIT).
    #[must_use]
    pub fn limited_to(mut self, item: usize, list: usize) -> Self {
        (self.0.item_limit, self.0.limit) = (item, list);
        self
    }

    /// Lets an item [wait](Self::unknown) for its namespace if the mapping does not know it. Otherwise, the item is left out.
    #[must_use]
    pub fn awaiting_namespaces(mut self) -> Self {
        self.0.await_namespaces();
        self
    }

    /// The host name of the namespace for which an item waits.
    pub fn unknown(&self) -> Option<&[u8]> {
        self.0.waits.awaited()
    }

    /// Items in other namespaces than these do not wait, because no other namespace exists.
    pub fn await_only(&mut self, existing: Arc<ExistingNamespaces>) {
        self.0.waits.limit(existing);
    }

    /// Uses newer names from the next item on.
    pub fn remap(&mut self, newer: Mapping) {
        self.0.remap(newer);
    }

    /// Handles the item that waits, and what has arrived after it. It may wait again.
    pub fn resume(&mut self) -> Result<(), StreamError> {
        self.0.resume()
    }

    /// Adds the next chunk, of any length. Do not use the stream after an error. If a namespace is
    /// [unknown](Self::unknown) afterwards, call [`resume`](Self::resume) before anything else.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), StreamError> {
        self.0.push(chunk)
    }

    /// Bytes held now: the output so far, and the received part of the next item.
    pub fn held(&self) -> usize {
        self.0.held()
    }

    /// The bytes of an item that has not arrived whole.
    pub fn pending(&self) -> usize {
        self.0.pending()
    }

    /// Ends the input, and returns the list in pieces.
    pub fn finish(self) -> Result<Vec<Bytes>, StreamError> {
        self.0.finish()
    }
}
