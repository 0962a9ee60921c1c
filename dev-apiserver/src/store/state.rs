//! The objects themselves, and the log of changes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use kube_wire::gvr::GroupResource;
use serde_json::Value;

use super::change::{Change, Place};
use crate::kinds::Kind;
use crate::object;

/// What a [`super::Store`] holds.
#[derive(Debug)]
pub(crate) struct State {
    revision: u64,
    objects: HashMap<GroupResource<'static>, BTreeMap<Place, Arc<Value>>>,
    log: VecDeque<Change>,
    memory: usize,
    /// Changes up to this one are forgotten.
    forgotten: u64,
}

/// The changes since then are no longer known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest revision that can be followed from.
    pub(crate) oldest: u64,
}

impl State {
    pub(super) fn new(memory: usize) -> Self {
        // Version 0 means "any" to clients, so the first object gets a later one.
        Self { revision: 1, objects: HashMap::new(), log: VecDeque::new(), memory, forgotten: 1 }
    }

    /// The version of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.objects.get(&kind.group_resource())?.get(&Place::new(namespace, name))
    }

    /// All objects of a kind in order; of one namespace if it is given.
    pub(crate) fn list(&self, kind: &'static Kind, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Value>> {
        self.list_after(kind, namespace, None).map(|(_, object)| object)
    }

    /// The same from behind a place on.
    pub(crate) fn list_after(
        &self,
        kind: &'static Kind,
        namespace: Option<&str>,
        after: Option<&Place>,
    ) -> impl Iterator<Item = (&Place, &Arc<Value>)> {
        let from = match (after, namespace) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(namespace)) => Bound::Included(Place::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        let found = self.objects.get(&kind.group_resource()).map(|objects| objects.range((from, Bound::Unbounded)));
        let namespace = namespace.map(str::to_owned);
        let is_inside = move |place: &Place| namespace.as_ref().is_none_or(|namespace| place.namespace == *namespace);
        found.into_iter().flatten().take_while(move |(place, _)| is_inside(place))
    }

    /// Stores an object under its name, with a new version.
    pub(crate) fn put(&mut self, kind: &'static Kind, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        object::metadata(&mut object).insert("resourceVersion".to_owned(), self.revision.to_string().into());
        let place = Place::new(object::namespace(&object), object::name(&object));
        let object = Arc::new(object);
        let objects = self.objects.entry(kind.group_resource()).or_default();
        let before = objects.insert(place, Arc::clone(&object));
        self.note(Change { revision: self.revision, kind, before, object: Arc::clone(&object), removed: false });
        object
    }

    /// Removes an object; its last state has the version of the removal.
    pub(crate) fn remove(&mut self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let objects = self.objects.get_mut(&kind.group_resource())?;
        let before = objects.remove(&Place::new(namespace, name))?;
        self.revision += 1;
        let mut last = Value::clone(&before);
        object::metadata(&mut last).insert("resourceVersion".to_owned(), self.revision.to_string().into());
        let object = Arc::new(last);
        let change =
            Change { revision: self.revision, kind, before: Some(before), object: Arc::clone(&object), removed: true };
        self.note(change);
        Some(object)
    }

    /// What happened after this revision, oldest first.
    pub(crate) fn changes_after(&self, revision: u64) -> Result<impl Iterator<Item = &Change>, TooOld> {
        if revision < self.forgotten {
            return Err(TooOld { oldest: self.forgotten });
        }
        // Every write is one change, so the place of a revision in the log is known.
        let skip = usize::try_from(revision - self.forgotten).unwrap_or(usize::MAX).min(self.log.len());
        Ok(self.log.range(skip..))
    }

    fn note(&mut self, change: Change) {
        if self.log.len() == self.memory
            && let Some(oldest) = self.log.pop_front()
        {
            self.forgotten = oldest.revision;
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
    fn changes_are_told_in_order_until_they_are_forgotten() {
        let kind = kinds::of("", "configmaps");
        let mut state = State::new(2);
        let start = state.revision();
        let first = state.put(kind, config_map("x"));
        assert_eq!(first["metadata"]["resourceVersion"], (start + 1).to_string());
        state.put(kind, config_map("y"));
        assert_eq!(state.changes_after(start).unwrap().count(), 2);
        let removed = state.remove(kind, "a", "x").unwrap();
        assert_eq!(removed["metadata"]["resourceVersion"], state.revision().to_string());
        assert_eq!(state.changes_after(start).err(), Some(TooOld { oldest: start + 1 }));
        let told: Vec<_> = state.changes_after(start + 1).unwrap().map(|change| change.removed).collect();
        assert_eq!(told, [false, true]);
        assert_eq!(state.changes_after(state.revision()).unwrap().count(), 0);
    }

    #[test]
    fn a_list_stays_in_its_namespace_and_goes_on_where_it_ended() {
        let kind = kinds::of("", "configmaps");
        let mut state = State::new(8);
        for name in ["b", "a", "c"] {
            state.put(kind, config_map(name));
        }
        state.put(kind, json!({"metadata": {"namespace": "aa", "name": "a"}}));
        let names: Vec<_> = state.list(kind, Some("a")).map(|object| object::name(object)).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let after = Place::new("a", "b");
        assert_eq!(state.list_after(kind, Some("a"), Some(&after)).count(), 1);
        assert_eq!(state.list_after(kind, None, Some(&after)).count(), 2);
    }
}
