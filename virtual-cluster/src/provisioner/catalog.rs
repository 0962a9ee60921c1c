//! The bindings that every namespace of a virtual cluster must mirror: those of its root namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rewrite::ClusterName;
use tokio::sync::Semaphore;

use super::binding::{Binding, Wanted};
use super::names::{CLUSTER_ADMIN, MIRROR_PREFIX};

/// The maximum number of namespaces of one virtual cluster to which mirrors are written at once, for all requests of
/// its clients together. It is small because the host's priority and fairness sees the requests of an agent as one
/// flow: a thousand mirrors must not delay the agent's requests for other clusters.
pub(super) const MAX_CONCURRENT: u32 = 2;

/// The maximum number of new namespaces of a virtual cluster that get their mirrors at once, for the same reason.
/// Clients that create more wait.
const CREATIONS_AT_ONCE: usize = 4;

/// A catalog that the control loop and the requests of clients share. Clones are the same catalog.
#[derive(Clone, Debug)]
pub(super) struct SharedCatalog(Arc<Mutex<Catalog>>);

/// The ClusterRoleBindings of each virtual cluster, as mirrors.
#[derive(Debug)]
pub(super) struct Catalog(HashMap<ClusterName, Mirrors>);

#[derive(Debug)]
struct Mirrors {
    /// The administrators' mirror. It does not depend on the current content of the root namespace.
    administrators: Arc<Wanted>,
    by_binding: BTreeMap<String, Mirror>,
    is_complete: bool,
    /// The bindings that the watch has reported as deleted during the first list, with the versions of their deletions.
    gone: Option<HashMap<String, u64>>,
    /// The newest version that the watch has delivered.
    heard: u64,
    /// For requests that put bindings into force before the response.
    places: Arc<Semaphore>,
    /// For requests that create namespaces.
    creations: Arc<Semaphore>,
}

#[derive(Debug)]
struct Mirror {
    /// The resource version of the binding.
    version: u64,
    bytes: usize,
    wanted: Arc<Wanted>,
}

/// An event of a watch.
#[derive(Clone, Copy)]
pub(super) enum Event<'a> {
    There(&'a Binding),
    Gone { name: &'a str, version: u64 },
}

/// The versions of bindings at one point in time.
pub(super) struct BindingVersions(HashMap<String, u64>);

// === impl SharedCatalog ===

impl SharedCatalog {
    pub(super) fn new(clusters: &[ClusterName]) -> Self {
        Self(Arc::new(Mutex::new(Catalog::new(clusters))))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Catalog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Catalog ===

impl Catalog {
    pub(super) fn new(clusters: &[ClusterName]) -> Self {
        let mut catalog = Self(HashMap::new());
        catalog.serve(clusters);
        catalog
    }

    /// From now on, keeps the bindings of exactly these clusters.
    pub(super) fn serve(&mut self, clusters: &[ClusterName]) {
        self.0.retain(|cluster, _| clusters.contains(cluster));
        for cluster in clusters {
            self.0.entry(cluster.clone()).or_insert_with(|| Mirrors {
                administrators: Arc::new(Binding::cluster_admin(cluster).mirror()),
                by_binding: BTreeMap::new(),
                is_complete: false,
                gone: None,
                heard: 0,
                places: Arc::new(Semaphore::new(MAX_CONCURRENT as usize)),
                creations: Arc::new(Semaphore::new(CREATIONS_AT_ONCE)),
            });
        }
    }

    /// Limits how many requests of the agent put bindings of this cluster into force at once.
    pub(super) fn places(&self, cluster: &ClusterName) -> Option<Arc<Semaphore>> {
        self.0.get(cluster).map(|mirrors| Arc::clone(&mirrors.places))
    }

    /// Limits how many new namespaces of this cluster get their mirrors at once.
    pub(super) fn creations(&self, cluster: &ClusterName) -> Option<Arc<Semaphore>> {
        self.0.get(cluster).map(|mirrors| Arc::clone(&mirrors.creations))
    }

    /// The known mirrors that each namespace of the cluster must have. The administrators' mirror is the last: when it
    /// is in force, all others are too, because RBAC's caches receive changes in order.
    pub(super) fn mirrors(&self, cluster: &ClusterName) -> Vec<Arc<Wanted>> {
        let Some(mirrors) = self.0.get(cluster) else { return Vec::new() };
        mirrors.by_binding.values().map(|mirror| &mirror.wanted).chain([&mirrors.administrators]).cloned().collect()
    }

    /// Whether [`mirrors`](Self::mirrors) returns all of them. Before that, a mirror that it does not return may be
    /// wanted.
    pub(super) fn is_complete(&self, cluster: &ClusterName) -> bool {
        self.0.get(cluster).is_some_and(|mirrors| mirrors.is_complete)
    }

    /// Begins the list of a root namespace. The watch must have delivered its first list before, so that it reports
    /// later deletions.
    pub(super) fn begin_list(&mut self, cluster: &ClusterName) -> BindingVersions {
        if let Some(mirrors) = self.0.get_mut(cluster).filter(|mirrors| !mirrors.is_complete) {
            mirrors.gone = Some(HashMap::new());
        }
        self.versions(cluster)
    }

    /// Ends the list of a root namespace; `None` if it failed. Returns whether that changes the mirrors, or the bindings
    /// are complete for the first time.
    pub(super) fn end_list(
        &mut self,
        cluster: &ClusterName,
        bindings: Option<Vec<Binding>>,
        known: &BindingVersions,
    ) -> bool {
        let Some(gone) = self.0.get_mut(cluster).map(|mirrors| mirrors.gone.take()) else { return false };
        let Some(mut bindings) = bindings else { return false };
        let gone = gone.unwrap_or_default();
        // The watch has already reported these deletions, and does not repeat them.
        bindings.retain(|binding| gone.get(&binding.name).is_none_or(|deletion| *deletion < binding.version));
        let is_news = self.listed(cluster, &bindings, known);
        let mirrors = self.0.get_mut(cluster);
        mirrors.is_some_and(|mirrors| !std::mem::replace(&mut mirrors.is_complete, true) || is_news)
    }

    /// Records that the watch delivered a binding in this version, or its deletion. Returns whether that changes the
    /// mirrors.
    pub(super) fn tell(&mut self, cluster: &ClusterName, binding: Event<'_>) -> bool {
        let Some(mirrors) = self.0.get_mut(cluster) else { return false };
        match binding {
            Event::There(binding) => {
                mirrors.heard = mirrors.heard.max(binding.version);
                mirrors.insert(binding)
            }
            Event::Gone { name, version } => {
                mirrors.heard = mirrors.heard.max(version);
                if let Some(gone) = &mut mirrors.gone {
                    gone.insert(name.to_owned(), version);
                }
                mirrors.by_binding.remove(name).is_some()
            }
        }
    }

    /// Records a binding that was read, unless the watch has delivered a newer version since: resource versions of one
    /// kind are comparable (KEP-5504).
    pub(super) fn read(&mut self, cluster: &ClusterName, binding: &Binding) -> bool {
        self.0.get_mut(cluster).is_some_and(|mirrors| {
            let is_old = mirrors.is_complete && binding.version <= mirrors.heard;
            !is_old && mirrors.insert(binding)
        })
    }

    /// The known versions of the bindings. Call this before reading them.
    pub(super) fn versions(&self, cluster: &ClusterName) -> BindingVersions {
        let mirrors = self.0.get(cluster).into_iter().flat_map(|mirrors| &mirrors.by_binding);
        BindingVersions(mirrors.map(|(name, mirror)| (name.clone(), mirror.version)).collect())
    }

    /// Records that the binding was not found. If the watch has delivered it since `known`, it is a new one and stays.
    pub(super) fn missing(&mut self, cluster: &ClusterName, binding: &str, known: &BindingVersions) -> bool {
        let Some(mirrors) = self.0.get_mut(cluster) else { return false };
        let version = mirrors.by_binding.get(binding).map(|mirror| mirror.version);
        version.is_some() && version == known.0.get(binding).copied() && mirrors.by_binding.remove(binding).is_some()
    }

    /// Records the result of a list of all bindings. Returns whether that changes the mirrors.
    pub(super) fn listed(&mut self, cluster: &ClusterName, bindings: &[Binding], known: &BindingVersions) -> bool {
        let gone: Vec<_> =
            known.0.keys().filter(|name| bindings.iter().all(|binding| binding.name != **name)).collect();
        let mut is_news = false;
        for name in gone {
            is_news |= self.missing(cluster, name, known);
        }
        for binding in bindings {
            is_news |= self.read(cluster, binding);
        }
        is_news
    }

    /// Whether a binding is new, or larger than the known one of its name, or has more subjects.
    pub(super) fn is_growth(&self, cluster: &ClusterName, binding: &Binding) -> bool {
        let known = self.0.get(cluster).and_then(|mirrors| mirrors.by_binding.get(&binding.name));
        let mirror = binding.mirror();
        known.is_none_or(|known| mirror.bytes() > known.bytes || mirror.subjects() > known.wanted.subjects())
    }

    /// The number of bindings and their bytes, if this one replaces the known one of its name.
    pub(super) fn weigh(&self, cluster: &ClusterName, with: Option<&Binding>) -> (usize, usize) {
        let Some(mirrors) = self.0.get(cluster) else { return (0, 0) };
        let others = mirrors.by_binding.iter().filter(|(name, _)| with.is_none_or(|binding| binding.name != **name));
        let with = with.map(|binding| binding.mirror().bytes());
        let bytes = others.map(|(_, mirror)| mirror.bytes).chain(with);
        bytes.fold((1, 0), |(count, sum), bytes| (count + 1, sum + bytes))
    }

    /// The current version of a mirror: its binding may have been changed or deleted since the catalog returned it.
    pub(super) fn current(&self, cluster: &ClusterName, mirror: &Arc<Wanted>) -> Option<Arc<Wanted>> {
        match mirror.name.strip_prefix(MIRROR_PREFIX) {
            Some(binding) if binding != CLUSTER_ADMIN => self.mirror(cluster, binding),
            _ => Some(Arc::clone(mirror)),
        }
    }

    /// The mirror of a binding.
    pub(super) fn mirror(&self, cluster: &ClusterName, binding: &str) -> Option<Arc<Wanted>> {
        self.0.get(cluster)?.by_binding.get(binding).map(|mirror| Arc::clone(&mirror.wanted))
    }
}

// === impl Mirrors ===

impl Mirrors {
    /// Returns whether that changes anything.
    fn insert(&mut self, binding: &Binding) -> bool {
        if binding.name == CLUSTER_ADMIN {
            return false;
        }
        let (version, wanted) = (binding.version, binding.mirror());
        match self.by_binding.get_mut(&binding.name) {
            Some(known) if known.version > version => false,
            Some(known) if *known.wanted == wanted => {
                known.version = version;
                false
            }
            _ => {
                self.by_binding
                    .insert(binding.name.clone(), Mirror { version, bytes: wanted.bytes(), wanted: Arc::new(wanted) });
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::found::Found;
    use super::*;

    fn binding(name: &str, role: &str, version: u64) -> Binding {
        let metadata = json!({"name": name, "resourceVersion": version.to_string()});
        let object = json!({"metadata": metadata, "roleRef": {"kind": "ClusterRole", "name": role}});
        Binding::of(&Found::of(&object).unwrap()).unwrap()
    }

    fn catalog() -> (ClusterName, Catalog) {
        let cluster = ClusterName::new("vc").unwrap();
        let catalog = Catalog::new(std::slice::from_ref(&cluster));
        (cluster, catalog)
    }

    #[test]
    fn the_mirror_of_administrators_is_last_and_kept() {
        let (cluster, mut catalog) = catalog();
        let names = |catalog: &Catalog| -> Vec<_> {
            catalog.mirrors(&cluster).iter().map(|mirror| mirror.name.clone()).collect()
        };
        let (own, admin) = (binding("zz", "view", 7), binding(CLUSTER_ADMIN, "view", 7));
        assert!(catalog.tell(&cluster, Event::There(&own)) && !catalog.tell(&cluster, Event::There(&own)));
        assert!(!catalog.tell(&cluster, Event::There(&admin)));
        assert_eq!(names(&catalog), ["atoll:crb:zz", "atoll:crb:cluster-admin"]);
        assert!(!catalog.tell(&cluster, Event::Gone { name: CLUSTER_ADMIN, version: 8 }));
        assert!(catalog.tell(&cluster, Event::Gone { name: "zz", version: 8 }));
        assert_eq!(names(&catalog), ["atoll:crb:cluster-admin"]);
        assert!(!catalog.tell(&ClusterName::new("other").unwrap(), Event::There(&own)));
    }

    #[test]
    fn an_earlier_read_does_not_undo_a_change() {
        let (cluster, mut catalog) = catalog();
        catalog.tell(&cluster, Event::There(&binding("a", "admin", 5)));
        let known = catalog.begin_list(&cluster);
        assert!(catalog.end_list(&cluster, Some(vec![binding("a", "admin", 5)]), &known));
        let known = catalog.versions(&cluster);
        // It was read, then changed, then deleted.
        catalog.tell(&cluster, Event::There(&binding("a", "view", 6)));
        assert!(!catalog.read(&cluster, &binding("a", "admin", 5)));
        assert_eq!(*catalog.mirror(&cluster, "a").unwrap(), binding("a", "view", 6).mirror());
        assert!(!catalog.missing(&cluster, "a", &known), "what was made anew is gone");
        catalog.tell(&cluster, Event::Gone { name: "a", version: 7 });
        assert!(!catalog.read(&cluster, &binding("a", "view", 6)));
        assert_eq!(catalog.mirror(&cluster, "a"), None);
        // A version that is newer than all delivered ones is a change.
        assert!(catalog.read(&cluster, &binding("a", "edit", 8)));
        let known = catalog.versions(&cluster);
        assert!(catalog.missing(&cluster, "a", &known));
    }

    #[test]
    fn a_list_does_not_undo_a_deletion() {
        let (cluster, mut catalog) = catalog();
        let known = catalog.begin_list(&cluster);
        // The list has all of them. Then two are deleted, and one of these is created again.
        let listed = || Some(vec![binding("a", "view", 3), binding("b", "view", 4), binding("c", "view", 9)]);
        catalog.tell(&cluster, Event::Gone { name: "a", version: 7 });
        catalog.tell(&cluster, Event::Gone { name: "c", version: 8 });
        assert!(catalog.end_list(&cluster, listed(), &known) && catalog.is_complete(&cluster));
        assert_eq!(catalog.mirror(&cluster, "a"), None);
        // These are older than what the watch has delivered, but it has not delivered them.
        assert!(catalog.mirror(&cluster, "b").is_some() && catalog.mirror(&cluster, "c").is_some());

        // A later list is one read among others.
        let known = catalog.begin_list(&cluster);
        assert!(!catalog.end_list(&cluster, listed(), &known));
        assert_eq!(catalog.mirror(&cluster, "a"), None);
        let known = catalog.begin_list(&cluster);
        assert!(!catalog.end_list(&cluster, None, &known) && catalog.mirror(&cluster, "b").is_some());
    }
}
