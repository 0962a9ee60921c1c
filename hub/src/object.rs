//! Objects of the host, and what the hub must know about them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::budget::{Charge, Usage};
use crate::place::Place;

/// The `metadata.resourceVersion` of an object, or of a list.
///
/// kube-apiserver compares the versions of built-in and custom resources as integers (KEP-5504). The driver must not
/// use a hub for an aggregated API, where versions are opaque, or for Events: etcd deletes all keys of a lease at one
/// revision when the lease expires, and the hub takes only one event of each version. kube-apiserver does not cache Events
/// either (`DefaultWatchCacheSizes` in `pkg/kubeapiserver/default_storage_factory_builder.go`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(u64);

/// The name of an object on the host. Keys sort by namespace, then by name. The host's own order differs if the name of a
/// namespace is the beginning of another one: in etcd, `a-b/x` comes before `a/x`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The host namespace. It is empty for a cluster-scoped object.
    pub namespace: Arc<str>,
    /// The name on the host.
    pub name: Arc<str>,
}

/// Labels, sorted by key. The text consists of keys and values, each with a NUL after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    text: Box<str>,
    /// The position of each key in the text.
    keys: Box<[u32]>,
}

/// A text is not a version: it is not a decimal number of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a resourceVersion")]
pub struct InvalidVersion;

/// A key or a value of a label contains a NUL, or the labels are longer than 4 GiB. Kubernetes allows no such labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a label contains a NUL, or the labels are too long")]
pub struct InvalidLabels;

/// An object that the driver has read.
#[derive(Debug)]
pub struct NewObject<T> {
    /// Its name on the host.
    pub key: Key,
    /// Its version.
    pub version: ResourceVersion,
    /// The labels with which selectors are compared.
    pub labels: Labels,
    /// The clusters to which it belongs.
    pub place: Place,
    /// The approximate size of `data` in memory, in bytes.
    pub size: usize,
    /// The driver's data, such as the object's JSON.
    pub data: T,
}

/// An object at one version. It counts towards the budget until the last reference to it is dropped.
#[derive(Debug)]
pub struct Object<T> {
    /// Its name on the host.
    pub key: Key,
    /// Its version.
    pub version: ResourceVersion,
    /// The labels with which selectors are compared.
    pub labels: Labels,
    /// The clusters to which it belongs.
    pub place: Place,
    /// The driver's data.
    pub data: T,
    charge: Charge,
}

// === impl ResourceVersion ===

impl ResourceVersion {
    /// The version with this number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl FromStr for ResourceVersion {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        // Rust accepts a sign before the number, Go's `ParseUint` does not.
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text.parse().map(Self).map_err(|_| InvalidVersion) } else { Err(InvalidVersion) }
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Labels ===

impl Labels {
    /// Labels with these keys and values. If a key occurs twice, the last value counts, as in Go's `encoding/json`.
    pub fn new<'l>(labels: impl IntoIterator<Item = (&'l str, &'l str)>) -> Result<Self, InvalidLabels> {
        let mut sorted: Vec<(&str, &str)> = labels.into_iter().collect();
        if sorted.iter().any(|(key, value)| key.contains('\0') || value.contains('\0')) {
            return Err(InvalidLabels);
        }
        // The sort is stable. Of equal keys, `dedup_by_key` keeps the first one, so the last one must come first.
        sorted.reverse();
        sorted.sort_by_key(|(key, _)| *key);
        sorted.dedup_by_key(|(key, _)| *key);
        let mut text = String::new();
        let mut keys = Vec::with_capacity(sorted.len());
        for (key, value) in sorted {
            keys.push(u32::try_from(text.len()).map_err(|_| InvalidLabels)?);
            for part in [key, "\0", value, "\0"] {
                text.push_str(part);
            }
        }
        Ok(Self { text: text.into_boxed_str(), keys: keys.into_boxed_slice() })
    }

    /// The value of a label. Clients choose both the selectors and the labels, so the cost of a search must not grow with
    /// the number of labels.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.keys.binary_search_by(|start| self.part(*start as usize).cmp(key)).ok()?;
        Some(self.part(self.keys[found] as usize + key.len() + 1))
    }

    /// The key or value that begins at this position.
    fn part(&self, start: usize) -> &str {
        self.text[start..].split('\0').next().unwrap_or_default()
    }

    fn size(&self) -> usize {
        self.text.len() + size_of_val(&*self.keys)
    }
}

// === impl Object ===

impl<T> Object<T> {
    /// Its memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.charge.bytes()
    }
}

// === impl NewObject ===

impl<T> NewObject<T> {
    /// The memory of the object and of its place in the store and the window, in bytes.
    fn footprint(&self) -> usize {
        /// The key in the store and in a partition, the nodes of both maps, and the `Arc`s.
        const OVERHEAD: usize = 288;
        OVERHEAD
            + size_of::<Object<T>>()
            + self.key.namespace.len()
            + self.key.name.len()
            + self.labels.size()
            + self.size
    }

    pub(crate) fn charged_to(self, usage: &Arc<Usage>) -> Arc<Object<T>> {
        let charge = usage.charge(self.footprint());
        let Self { key, version, labels, place, data, size: _ } = self;
        Arc::new(Object { key, version, labels, place, data, charge })
    }
}
