//! The objects of a state: those of a list, and those with which a watch begins.
//!
//! A client may read them slowly, and meanwhile the hub changes. A copy of all references would take time in proportion to
//! the number of objects, while the driver and all other watchers wait for the hub. So the maps are persistent, and a client
//! keeps the former ones. kube-apiserver clones its B-tree for the same reason (`store_btree.go` in `pkg/storage/cacher`).

use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use crate::object::{Key, Object};
use crate::selection::{Scope, Selection};

/// Objects by their keys. A clone takes constant time, and shares the memory.
pub(crate) type Objects<T> = RedBlackTreeMapSync<Key, Arc<Object<T>>>;

/// A part of such objects, in the order of their keys.
type Range<'a, T> = Peekable<Box<dyn Iterator<Item = (&'a Key, &'a Arc<Object<T>>)> + 'a>>;

/// The objects of a state that a client has not examined yet.
#[derive(Debug)]
pub struct Snapshot<T> {
    /// Those of the virtual cluster, and those of everybody.
    objects: [Objects<T>; 2],
    /// The last one that the client has examined.
    last: Option<Key>,
    is_complete: bool,
}

// === impl Snapshot ===

impl<T> Snapshot<T> {
    pub(crate) fn new(own: Objects<T>, shared: Objects<T>) -> Self {
        Self { objects: [own, shared], last: None, is_complete: false }
    }

    /// The next selected objects in the order of their keys, of about `max` bytes together. The result can be empty, because
    /// one call examines only a limited number of objects. `None` at the end. Always pass the same selection, of the same
    /// cluster.
    pub fn next(&mut self, selection: &Selection, max: usize) -> Option<Vec<Arc<Object<T>>>> {
        if self.is_complete {
            return None;
        }
        let (mut bytes, mut objects, mut last) = (0, Vec::new(), None);
        let mut candidates = self.candidates(selection);
        for _ in 0..selection.max_examined() {
            let Some(object) = candidates.next() else {
                drop(candidates);
                self.is_complete = true;
                return (!objects.is_empty()).then_some(objects);
            };
            if selection.selects(object) {
                bytes += object.bytes();
                if bytes > max && !objects.is_empty() {
                    break;
                }
                objects.push(Arc::clone(object));
            }
            last = Some(Arc::clone(object));
        }
        drop(candidates);
        self.pass(&last.expect("the first object is examined in any case"));
        Some(objects)
    }

    /// Whether all objects have been examined. If `false`, the remaining objects may still include no selected one.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The objects that a selection can contain, in the order of their keys. Selectors can be expensive, so they are not
    /// compared here.
    fn candidates<'a>(&'a self, selection: &'a Selection) -> impl Iterator<Item = &'a Arc<Object<T>>> {
        let mut ranges: Vec<_> = self.objects.iter().flat_map(|objects| self.ranges(objects, selection)).collect();
        std::iter::from_fn(move || {
            let heads = ranges.iter_mut().enumerate();
            let heads = heads.filter_map(|(number, range)| Some((range.peek()?.0, number)));
            let (_, first) = heads.min()?;
            ranges[first].next().map(|(_, object)| object)
        })
    }

    /// The objects up to this one have been examined.
    fn pass(&mut self, object: &Object<T>) {
        self.last = Some(object.key.clone());
    }

    fn ranges<'a>(&'a self, objects: &'a Objects<T>, selection: &'a Selection) -> Vec<Range<'a, T>> {
        let after = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let Scope::Namespaces(namespaces) = &selection.scope else {
            let all: Box<dyn Iterator<Item = _>> = Box::new(objects.range::<Key, _>((after, Bound::Unbounded)));
            return vec![all.peekable()];
        };
        let name = selection.fields.exact("metadata.name");
        let in_namespace = |namespace: &'a Arc<str>| {
            let first = Key { namespace: Arc::clone(namespace), name: name.unwrap_or_default().into() };
            let begin = match &self.last {
                Some(last) if *last >= first => Bound::Excluded(last.clone()),
                _ => Bound::Included(first),
            };
            let is_in = move |key: &Key| key.namespace == *namespace && name.is_none_or(|name| *key.name == *name);
            let within = objects.range((begin, Bound::Unbounded)).take_while(move |(key, _)| is_in(key));
            let within: Box<dyn Iterator<Item = _>> = Box::new(within);
            within.peekable()
        };
        namespaces.iter().map(in_namespace).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::object::{Labels, NewObject, ResourceVersion};
    use crate::place::{ClusterId, Place};

    fn objects(keys: &[(&str, &str)]) -> Objects<()> {
        let usage = Budget::new(0).usage();
        let mut objects = Objects::default();
        for (namespace, name) in keys {
            let key = Key { namespace: (*namespace).into(), name: (*name).into() };
            let (version, labels, place) = (ResourceVersion::new(1), Labels::default(), Place::Everybody);
            let object = NewObject { key: key.clone(), version, labels, place, size: 0, data: () };
            objects.insert_mut(key, object.charged_to(&usage));
        }
        objects
    }

    /// The names of all candidates, if the client examines this many at a time.
    fn names(snapshot: &mut Snapshot<()>, selection: &Selection, at_once: usize) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            let batch: Vec<_> = snapshot.candidates(selection).take(at_once).map(Arc::clone).collect();
            let Some(last) = batch.last() else { return names };
            snapshot.pass(last);
            names.extend(batch.iter().map(|object| format!("{}/{}", object.key.namespace, object.key.name)));
        }
    }

    /// Whatever the maximum length of a batch is.
    #[test]
    fn a_snapshot_is_read_once() {
        let own = [("a", "x"), ("b", "x"), ("c", "x")];
        for max in [0, 1, 1000, usize::MAX] {
            let mut snapshot = Snapshot::new(objects(&own), Objects::default());
            let everything = Selection::everything(ClusterId(1));
            let read = std::iter::from_fn(|| snapshot.next(&everything, max)).flatten();
            let read: Vec<_> = read.map(|object| object.key.namespace.to_string()).collect();
            assert_eq!(read, ["a", "b", "c"], "{max}");
            assert!(snapshot.is_complete() && snapshot.next(&everything, max).is_none());
        }
    }

    #[test]
    fn one_call_examines_a_limited_number() {
        let names: Vec<String> = (0..5000).map(|number| format!("n{number}")).collect();
        let own: Vec<(&str, &str)> = names.iter().map(|name| ("a", &**name)).chain([("b", "last")]).collect();
        let mut snapshot = Snapshot::new(objects(&own), Objects::default());
        let fields = "metadata.name=last".parse().unwrap();
        let selection = Selection { fields, ..Selection::everything(ClusterId(1)) };
        let batches: Vec<_> = std::iter::from_fn(|| snapshot.next(&selection, 0)).map(|batch| batch.len()).collect();
        assert_eq!((batches.iter().sum::<usize>(), batches.last()), (1, Some(&1)));
        assert!(batches.len() > 2, "{batches:?}");
    }

    #[test]
    fn candidates_are_in_order_and_come_once() {
        let own = [("b", "x"), ("a", "y"), ("c", "x"), ("a", "x")];
        for at_once in 1..6 {
            let mut all = Snapshot::new(objects(&own), objects(&[("", "n"), ("b", "m")]));
            let everything = Selection::everything(ClusterId(1));
            assert_eq!(names(&mut all, &everything, at_once), ["/n", "a/x", "a/y", "b/m", "b/x", "c/x"]);

            let mut some = Snapshot::new(objects(&own), Objects::default());
            let scope = Scope::Namespaces(vec!["c".into(), "a".into(), "d".into()]);
            let selection = Selection { scope, ..everything };
            assert_eq!(names(&mut some, &selection, at_once), ["a/x", "a/y", "c/x"]);
        }
    }
}
