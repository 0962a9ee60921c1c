//! Lists in protobuf, which arrive in chunks.

use bytes::Bytes;

use super::error::StreamError;
use super::filter::Filter;
use super::protobuf::List;
use super::whole::View;
use crate::Program;

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

    /// Adds the next chunk, of any length. Do not use the stream after an error.
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
