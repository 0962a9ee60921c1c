//! The overlays in the annotations of a shared object: one annotation for each virtual cluster that has the object. Its
//! value is the overlay, or a pointer to one that is [stored](super::overlays) elsewhere.

use rewrite::name::{LEFT_PREFIX, OVERLAY_PREFIX};
use rewrite::pointer::Pointer;
use serde_json::{Map, Value, json};

use super::overlay::Overlay;

/// The overlays of an object.
#[derive(Clone, Copy, Debug)]
pub struct Attached<'a>(&'a Value);

/// The overlays of an object, to change them.
#[derive(Debug)]
pub(super) struct AttachedMut<'a>(&'a mut Map<String, Value>);

// === impl Attached ===

impl<'a> Attached<'a> {
    /// Those in an object with this metadata.
    pub(super) fn new(metadata: &'a Value) -> Self {
        Self(&metadata["annotations"])
    }

    /// The overlay of the cluster. For an overlay that is stored elsewhere, only the pending change is known. An
    /// unreadable annotation counts as an overlay too.
    pub fn overlay(self, cluster: &str) -> Option<Overlay> {
        self.text(cluster).map(parse)
    }

    /// The pointer to the overlay of the cluster, if it is stored elsewhere.
    pub fn pointer(self, cluster: &str) -> Option<Pointer> {
        Pointer::parse(self.text(cluster)?)
    }

    fn text(self, cluster: &str) -> Option<&'a str> {
        self.0[overlay_key(cluster)].as_str()
    }

    /// All virtual clusters that have the object.
    pub fn owners(self) -> impl Iterator<Item = &'a str> {
        let annotations = self.0.as_object().into_iter().flatten();
        annotations.filter_map(|(key, _)| key.strip_prefix(OVERLAY_PREFIX))
    }

    /// Whether another virtual cluster has the object too.
    pub fn has_others(self, cluster: &str) -> bool {
        self.owners().any(|owner| owner != cluster)
    }
}

// === impl AttachedMut ===

impl<'a> AttachedMut<'a> {
    /// Those in these annotations.
    pub(super) fn new(annotations: &'a mut Map<String, Value>) -> Self {
        Self(annotations)
    }

    /// Adds the cluster to those that have the object, or replaces its overlay.
    pub(super) fn join(&mut self, cluster: &str, overlay: &Overlay) {
        self.insert(cluster, overlay.text());
    }

    /// The same, with an overlay that is stored elsewhere.
    pub(super) fn point(&mut self, cluster: &str, pointer: &Pointer) {
        self.insert(cluster, pointer.to_string());
    }

    fn insert(&mut self, cluster: &str, text: String) {
        self.0.remove(&left_key(cluster));
        self.0.insert(overlay_key(cluster), text.into());
    }

    /// Removes the cluster from those that have the object.
    pub(super) fn remove(&mut self, cluster: &str) {
        self.0.remove(&overlay_key(cluster));
    }

    /// Records that the cluster had the object, so that watches can still see it.
    pub(super) fn remember(&mut self, cluster: &str) {
        self.0.insert(left_key(cluster), json!(""));
    }

    /// Removes the record that the cluster had the object.
    pub(super) fn forget(&mut self, cluster: &str) {
        self.0.remove(&left_key(cluster));
    }

    /// Removes the records of clusters that had the object.
    pub(super) fn forget_left(&mut self) {
        self.0.retain(|key, _| !key.starts_with(LEFT_PREFIX));
    }

    /// Removes the pending changes of all clusters.
    pub(super) fn clear_pending_changes(&mut self) {
        let owners = self.0.iter().filter_map(|(key, value)| {
            let owner = key.strip_prefix(OVERLAY_PREFIX)?;
            Some((owner.to_owned(), value.as_str()?.to_owned()))
        });
        for (owner, text) in owners.collect::<Vec<_>>() {
            if let Some(pointer) = Pointer::parse(&text) {
                self.point(&owner, &Pointer { pending_change: None, ..pointer });
            } else if let Some(overlay) = Some(parse(&text)).filter(|overlay| overlay.pending_change.is_some()) {
                self.join(&owner, &Overlay { pending_change: None, ..overlay });
            }
        }
    }
}

fn parse(text: &str) -> Overlay {
    match Pointer::parse(text) {
        Some(pointer) => Overlay { pending_change: pointer.pending_change, ..Overlay::default() },
        None => serde_json::from_str(text).unwrap_or_default(),
    }
}

fn overlay_key(cluster: &str) -> String {
    format!("{OVERLAY_PREFIX}{cluster}")
}

fn left_key(cluster: &str) -> String {
    format!("{LEFT_PREFIX}{cluster}")
}
