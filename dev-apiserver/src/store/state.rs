//! The objects, and the log of their changes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use kube_wire::gvr::GroupResource;
use serde_json::Value;

use super::change::{Change, ObjectKey};
use crate::kinds::Kind;
use crate::object;

/// The content of a [`super::Store`].
#[derive(Debug)]
pub(crate) struct State {
    revision: u64,
    objects: HashMap<GroupResource<'static>, BTreeMap<ObjectKey, Arc<Value>>>,
    log: VecDeque<Change>,
    log_length: usize,
    /// The log has no changes up to this revision.
    compacted: u64,
}

/// The log no longer has all changes since the revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest revision since which the log has all changes.
    pub(crate) oldest: u64,
}

impl State {
    pub(super) fn new(log_length: usize) -> Self {
        // For clients, the resource version 0 means any version.
        Self { revision: 1, objects: HashMap::new(), log: VecDeque::new(), log_length, compacted: 1 }
    }

    /// The resource version of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.objects.get(&kind.group_resource())?.get(&ObjectKey::new(namespace, name))
    }

    /// All objects of a kind, or those in one namespace, in order.
    pub(crate) fn list(&self, kind: &'static Kind, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Value>> {
        self.list_after(kind, namespace, None).map(|(_, object)| object)
    }

    /// The same, but only the objects after a key.
    pub(crate) fn list_after(
        &self,
        kind: &'static Kind,
        namespace: Option<&str>,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = (&ObjectKey, &Arc<Value>)> {
        let from = match (after, namespace) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(namespace)) => Bound::Included(ObjectKey::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        let found = self.objects.get(&kind.group_resource()).map(|objects| objects.range((from, Bound::Unbounded)));
        let namespace = namespace.map(str::to_owned);
        let is_inside = move |key: &ObjectKey| namespace.as_ref().is_none_or(|namespace| key.namespace == *namespace);
        found.into_iter().flatten().take_while(move |(key, _)| is_inside(key))
    }

    /// Stores an object under its name, with a new resource version.
    pub(crate) fn put(&mut self, kind: &'static Kind, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        object::metadata(&mut object).insert("resourceVersion".to_owned(), self.revision.to_string().into());
        let key = ObjectKey::new(object::namespace(&object), object::name(&object));
        let object = Arc::new(object);
        let objects = self.objects.entry(kind.group_resource()).or_default();
        let before = objects.insert(key, Arc::clone(&object));
        self.log(Change { revision: self.revision, kind, before, object: Arc::clone(&object), removed: false });
        object
    }

    /// Removes an object, and returns its last state with a new resource version.
    pub(crate) fn remove(&mut self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let objects = self.objects.get_mut(&kind.group_resource())?;
        let before = objects.remove(&ObjectKey::new(namespace, name))?;
        self.revision += 1;
        let mut last = Value::clone(&before);
        object::metadata(&mut last).insert("resourceVersion".to_owned(), self.revision.to_string().into());
        let object = Arc::new(last);
        let change =
            Change { revision: self.revision, kind, before: Some(before), object: Arc::clone(&object), removed: true };
        self.log(change);
        Some(object)
    }

    /// The changes after this revision, the oldest first.
    pub(crate) fn changes_after(&self, revision: u64) -> Result<impl Iterator<Item = &Change>, TooOld> {
        if revision < self.compacted {
            return Err(TooOld { oldest: self.compacted });
        }
        // The log has one change for each revision.
        let skip = usize::try_from(revision - self.compacted).unwrap_or(usize::MAX).min(self.log.len());
        Ok(self.log.range(skip..))
    }

    fn log(&mut self, change: Change) {
        if self.log.len() == self.log_length
            && let Some(oldest) = self.log.pop_front()
        {
            self.compacted = oldest.revision;
        }
        self.log.push_back(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use serde_json::json;

    fn config_map(name: &str) -> Value {
        json!({"metadata": {"namespace": "a", "name": name}})
    }

    #[test]
    fn the_log_has_the_last_changes_in_order() {
        let kind = kinds::of("", "configmaps");
        let mut state = State::new(2);
        let start = state.revision();
        let first = state.put(kind, config_map("x"));
        assert_eq!(first["metadata"]["resourceVersion"], (start + 1).to_string());
        state.put(kind, config_map("y"));
        assert_eq!(state.changes_after(start).unwrap().count(), 2);
        let last = state.remove(kind, "a", "x").unwrap();
        assert_eq!(last["metadata"]["resourceVersion"], state.revision().to_string());
        assert_eq!(state.changes_after(start).err(), Some(TooOld { oldest: start + 1 }));
        let removed: Vec<_> = state.changes_after(start + 1).unwrap().map(|change| change.removed).collect();
        assert_eq!(removed, [false, true]);
        assert_eq!(state.changes_after(state.revision()).unwrap().count(), 0);
    }

    #[test]
    fn a_list_is_limited_to_a_namespace_and_continues_after_a_key() {
        let kind = kinds::of("", "configmaps");
        let mut state = State::new(8);
        for name in ["b", "a", "c"] {
            state.put(kind, config_map(name));
        }
        state.put(kind, json!({"metadata": {"namespace": "aa", "name": "a"}}));
        let names: Vec<_> = state.list(kind, Some("a")).map(|object| object::name(object)).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let after = ObjectKey::new("a", "b");
        assert_eq!(state.list_after(kind, Some("a"), Some(&after)).count(), 1);
        assert_eq!(state.list_after(kind, None, Some(&after)).count(), 2);
    }
}
