//! A list that is kept up to date.
//!
//! No change is lost. A watch continues from the last known resource version, which bookmarks keep recent (KEP-956).
//! After a new list, objects that disappeared in the meantime are reported as deleted. The reflector keeps only the
//! names and UIDs of objects.

mod change;
mod event;
mod known;
mod named;

use std::collections::VecDeque;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::calls::Api;
use super::error::ApiError;
use super::selection::Selection;
use super::source::{Read, Source};
pub use change::Change;
use event::Event;
use known::{Known, Listed};
use named::Named;

/// Lists and watches a collection forever, and parses the objects.
#[derive(Debug)]
pub struct Reflector {
    source: Source,
    /// Whether objects of a namespace are returned.
    is_in: fn(&str) -> bool,
    known: Known,
    /// The objects of the current list so far.
    listed: Listed,
    /// Changes that have not been returned yet. They are parsed one by one, because parsed objects may need twenty times
    /// the memory.
    ready: VecDeque<Change<Box<RawValue>>>,
}

// === impl Reflector ===

impl Reflector {
    /// Lists and watches this collection with the agent's own credentials.
    pub fn new(api: &Api, path: impl Into<String>, selection: Selection) -> Self {
        Self {
            source: Source::new(api, path, selection),
            is_in: |_| true,
            known: Known::default(),
            listed: Listed::default(),
            ready: VecDeque::new(),
        }
    }

    /// Ignores objects in namespaces for which `is_in` returns `false`. They need no memory.
    #[must_use]
    pub fn only_in(self, is_in: fn(&str) -> bool) -> Self {
        Self { is_in, ..self }
    }

    /// The next change. Waits until there is one. Failures are logged and tried again. Cancel-safe.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Change<T> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                if let Some(change) = change.parsed() {
                    return change;
                }
                continue;
            }
            let read = self.source.next().await;
            if let Err(error) = self.take(read) {
                self.source.fail(error);
            }
        }
    }

    fn take(&mut self, read: Read) -> Result<(), ApiError> {
        match read {
            Read::Item(item) => {
                let named = Named::of(&item)?;
                if (self.is_in)(named.namespace()) {
                    self.ready.extend(self.known.listed(&mut self.listed, named, item));
                }
            }
            Read::Listed(_) => {
                let listed = std::mem::take(&mut self.listed);
                self.ready.extend(self.known.vanished(&listed));
                self.ready.push_back(Change::Synced);
            }
            Read::Frame(frame) => {
                let (event, version) = Event::parse(&frame)?;
                if let Some(named) = Named::of_event(&event)?
                    && (self.is_in)(named.namespace())
                {
                    self.ready.extend(self.known.event(named, event));
                }
                self.source.reached(&version);
            }
            Read::Restarted { .. } | Read::Refused => self.listed = Listed::default(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
