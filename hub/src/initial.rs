//! The objects with which a watch begins.
//!
//! A client may read them slowly, and meanwhile the hub changes. A copy of all references would take time in proportion to
//! the number of objects, while the driver and all other watchers wait for the hub. So the maps are persistent, and a watch
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

/// The objects of a state that a watcher has not examined yet.
#[derive(Debug)]
pub(crate) struct Initial<T> {
    /// Those of the virtual cluster, and those of everybody.
    objects: [Objects<T>; 2],
    /// The last one that it has examined.
    last: Option<Key>,
}

// === impl Initial ===

impl<T> Initial<T> {
    pub(crate) fn new(own: Objects<T>, shared: Objects<T>) -> Self {
        Self { objects: [own, shared], last: None }
    }

    /// The objects that a selection can contain, in the order of their keys. Selectors can be expensive, so they are not
    /// compared here.
    pub(crate) fn candidates<'a>(&'a self, selection: &'a Selection) -> impl Iterator<Item = &'a Arc<Object<T>>> {
        let mut ranges: Vec<_> = self.objects.iter().flat_map(|objects| self.ranges(objects, selection)).collect();
        std::iter::from_fn(move || {
            let heads = ranges.iter_mut().enumerate();
            let heads = heads.filter_map(|(number, range)| Some((range.peek()?.0, number)));
            let (_, first) = heads.min()?;
            ranges[first].next().map(|(_, object)| object)
        })
    }

    /// The objects up to this one have been examined.
    pub(crate) fn pass(&mut self, object: &Object<T>) {
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

    /// The names of all candidates, if the watcher examines this many at a time.
    fn names(initial: &mut Initial<()>, selection: &Selection, at_once: usize) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            let batch: Vec<_> = initial.candidates(selection).take(at_once).map(Arc::clone).collect();
            let Some(last) = batch.last() else { return names };
            initial.pass(last);
            names.extend(batch.iter().map(|object| format!("{}/{}", object.key.namespace, object.key.name)));
        }
    }

    #[test]
    fn candidates_are_in_order_and_come_once() {
        let own = [("b", "x"), ("a", "y"), ("c", "x"), ("a", "x")];
        for at_once in 1..6 {
            let mut all = Initial::new(objects(&own), objects(&[("", "n"), ("b", "m")]));
            let everything = Selection::everything(ClusterId(1));
            assert_eq!(names(&mut all, &everything, at_once), ["/n", "a/x", "a/y", "b/m", "b/x", "c/x"]);

            let mut some = Initial::new(objects(&own), Objects::default());
            let scope = Scope::Namespaces(vec!["c".into(), "a".into(), "d".into()]);
            let selection = Selection { scope, ..everything };
            assert_eq!(names(&mut some, &selection, at_once), ["a/x", "a/y", "c/x"]);
        }
    }
}
