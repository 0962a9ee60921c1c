//! Protected labels or annotations of a Namespace, for all encodings.

use super::refusal::{Reason, Refusal};
use crate::json::{Fault as _, Step};
use crate::pod_security::{self, ENFORCE};

/// Entries that a map of strings must have, and their state.
#[derive(Default)]
pub(super) struct RequiredEntries {
    entries: Vec<(String, String)>,
    has: Vec<bool>,
    /// The Pod Security level that the body requests.
    requested_level: Option<String>,
    /// A key that is not allowed, or has an invalid value.
    refused: Option<(String, Reason)>,
}

// === impl RequiredEntries ===

impl RequiredEntries {
    pub(super) fn new(entries: Vec<(String, String)>) -> Self {
        Self { has: vec![false; entries.len()], entries, ..Self::default() }
    }

    /// Records a protected key, and whether it has the required value.
    pub(super) fn note(&mut self, key: &str, is: impl FnOnce(&str) -> bool) {
        match self.entries.iter().position(|(name, _)| name == key) {
            Some(number) if is(&self.entries[number].1) => self.has[number] = true,
            _ => self.refused = Some((key.to_owned(), Reason::Protected)),
        }
    }

    /// Records a Pod Security label of the body.
    pub(super) fn note_level(&mut self, key: &str, value: &str) {
        if let Err(detail) = pod_security::check(key, value) {
            self.refused = Some((key.to_owned(), Reason::PodSecurity { value: value.to_owned(), detail }));
        }
        if key == ENFORCE {
            self.requested_level = Some(value.to_owned());
        }
    }

    /// The requested level.
    pub(super) fn requested_level(&self) -> Option<&str> {
        self.requested_level.as_deref()
    }

    /// The missing entries, at the end of the map.
    pub(super) fn missing(self) -> Result<Vec<(String, String)>, Refusal> {
        if let Some((key, reason)) = self.refused {
            // Paths write keys of maps in brackets, and only this code knows that it is a map.
            return Err(Refusal::from(reason).within(Step::MapKey(&key)));
        }
        Ok(self.entries.into_iter().zip(self.has).filter(|(_, has)| !has).map(|(entry, _)| entry).collect())
    }
}
