//! The model of a client with a watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use hub::{EventKind, Key, Selection, Shown, WatcherId};

use crate::host::Change;

/// An event that a client gets: its form, its version, and the write whose object it shows.
pub(crate) type Got = (Shown, u64, u64);

/// Whether a client was woken.
#[derive(Debug, Default)]
pub(crate) struct Flag(AtomicBool);

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the client")]
pub(crate) struct Client {
    pub(crate) id: WatcherId,
    pub(crate) selection: Selection,
    /// The version after which it gets events.
    pub(crate) after: u64,
    /// The initial objects that it has not got yet.
    pub(crate) initial: Vec<(Key, u64)>,
    pub(crate) got: Vec<Got>,
    /// The version of the last bookmark.
    pub(crate) bookmark: u64,
    pub(crate) bookmarks: bool,
    /// The bookmark at the end of the initial events has not come yet.
    pub(crate) owed: bool,
    pub(crate) flag: Arc<Flag>,
    /// Nothing came at the last read, so it must be woken before anything comes.
    pub(crate) waits: bool,
    /// Whether it has read anything. Until then, the hub can hold objects for it that it does not select.
    pub(crate) has_read: bool,
}

impl Flag {
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Client {
    /// All events that it must have when the hub has all of this history.
    pub(crate) fn expected(&self, history: &[Change]) -> Vec<Got> {
        let newer = history.iter().filter(|change| change.now.version > self.after);
        newer.filter_map(|change| shown(change, &self.selection)).collect()
    }
}

/// The rule of kube-apiserver: does the selector match the object before the change, and after it?
fn shown(change: &Change, selection: &Selection) -> Option<Got> {
    let hub::Scope::Namespaces(namespaces) = &selection.scope else {
        return by_state(change, selection);
    };
    namespaces.contains(&change.key.namespace).then(|| by_state(change, selection))?
}

fn by_state(change: &Change, selection: &Selection) -> Option<Got> {
    let named = selection.fields.terms().iter().all(|term| *change.key.name == *term.value());
    let before = change.before.as_ref().filter(|before| named && before.is_selected(selection));
    let now = named && change.kind == EventKind::Written && change.now.is_selected(selection);
    let version = change.now.version;
    match (before, now) {
        (None, false) => None,
        (None, true) => Some((Shown::Added, version, change.now.data)),
        (Some(_), true) => Some((Shown::Modified, version, change.now.data)),
        (Some(_), false) if change.kind == EventKind::Deleted && change.now.is_selected(selection) => {
            Some((Shown::Deleted, version, change.now.data))
        }
        (Some(before), false) => Some((Shown::DeletedAsBefore, version, before.data)),
    }
}
