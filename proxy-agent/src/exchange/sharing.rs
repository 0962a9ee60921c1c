//! The feeds of the host, and what the configuration says about them.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use caller::Authorizer;
use caller::reviews::Decision;
use feeds::{ByNamespace, Bypass, ClusterId, Clusters, Feed, Feeds, Rights};
use kube_wire::ResourceRequest;
use kube_wire::gvr::GroupResource;
use ops::drain::Tasks;
use ops::metrics::{Counter, Family};
use rewrite::ClusterName;
use tracing::debug;

use crate::config::Hub;
use crate::translate::MappedFrames;
use host_client::api::Api;
use virtual_cluster::namespaces::Namespaces;

/// Resources that feeds never serve. etcd deletes Events of one lease at one version, so a feed could lose some. kube-apiserver
/// does not cache them either. It adds a warning to its responses with Endpoints, which are deprecated (KEP-4974).
const NEVER: [&str; 3] = ["events", "events.events.k8s.io", "endpoints"];

/// The feeds of the host.
#[derive(Debug)]
pub(crate) struct Sharing {
    pub(super) feeds: Feeds<ByNamespace>,
    /// The rights of the callers of open watches, and cached permissions for the next ones.
    pub(super) rights: Rights,
    /// Frames of feeds that watches have mapped.
    pub(super) mapped_frames: Arc<MappedFrames>,
    clusters: Arc<Clusters>,
    excluded: HashSet<String>,
    answers: OnceLock<Family<Answer, Counter>>,
    reviews: OnceLock<Family<Reviewed, Counter>>,
    tasks: Tasks,
}

ops::label_set! {
    /// Watches that clients requested, and lists that the hub answered.
    pub(crate) struct Answer {
        pub(crate) answer: &'static str,
    }
}

ops::label_set! {
    /// Checks of the rights to open watches.
    pub(crate) struct Reviewed {
        answer: &'static str,
    }
}

// === impl Sharing ===

impl Sharing {
    /// `None` if the configuration shares no watches.
    pub(super) fn new(
        config: &Hub,
        api: &Api,
        namespaces: &Arc<Namespaces>,
        authz: &Arc<Authorizer>,
        tasks: &Tasks,
    ) -> Option<Self> {
        let authz = Arc::clone(authz);
        let memory = usize::try_from(config.memory_mib).ok()?.saturating_mul(1 << 20);
        let clusters = Arc::new(Clusters::default());
        let placement = ByNamespace::new(Arc::clone(namespaces), Arc::clone(&clusters));
        let excluded = config.exclude.iter().map(ToString::to_string);
        let excluded = excluded.chain(NEVER.map(str::to_owned)).collect();
        (memory > 0).then(|| Self {
            feeds: Feeds::new(api, placement, memory, tasks),
            rights: Rights::new(move |cluster| authz.forget(cluster)),
            mapped_frames: Arc::default(),
            clusters,
            excluded,
            answers: OnceLock::new(),
            reviews: OnceLock::new(),
            tasks: tasks.clone(),
        })
    }

    /// The tasks of the agent.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The number of a virtual cluster.
    pub(super) fn number(&self, cluster: &ClusterName) -> ClusterId {
        self.clusters.number(cluster)
    }

    /// Whether watches of a resource are not shared.
    pub(super) fn excludes(&self, resource: GroupResource<'_>) -> bool {
        self.excluded.contains(&resource.to_string())
    }

    /// Watches RBAC of this host forever.
    pub(crate) async fn keep_rights(&self, api: &Api) {
        self.rights.keep(api).await;
    }

    /// The number of watches of RBAC objects that are current, of four.
    pub(crate) fn current_rights(&self) -> usize {
        self.rights.current_watches()
    }

    /// Counts answers and reviews in these metrics.
    pub(crate) fn count_in(&self, answers: Family<Answer, Counter>, reviews: Family<Reviewed, Counter>) {
        // This is called once.
        let _ = self.answers.set(answers);
        let _ = self.reviews.set(reviews);
    }

    /// The memory of all feeds, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.feeds.memory()
    }

    /// The limit for this memory.
    pub(crate) fn memory_limit(&self) -> usize {
        self.feeds.memory_limit()
    }

    /// The names of virtual clusters, sorted.
    pub(crate) fn names(&self, clusters: Vec<ClusterId>) -> Vec<String> {
        let names = clusters.into_iter().filter_map(|cluster| self.clusters.name(cluster));
        let mut names: Vec<_> = names.map(|name| name.to_string()).collect();
        names.sort();
        names
    }

    /// A watch goes to the host.
    pub(super) fn bypassed(&self, bypass: Bypass, request: &ResourceRequest<'_>) {
        let resource = request.group_resource();
        debug!(%resource, reason = bypass.as_str(), "a watch goes to the host");
        self.count(bypass.as_str());
    }

    pub(super) fn count(&self, answer: &'static str) {
        if let Some(answers) = self.answers.get() {
            answers.with(&Answer { answer }).inc();
        }
    }

    /// The right to an open watch was reviewed. `None` if the host has not answered.
    pub(super) fn reviewed(&self, decision: Option<&Decision>) {
        let answer = match decision {
            Some(Decision { allowed: true, .. }) => "allowed",
            Some(_) => "denied",
            None => "failed",
        };
        if let Some(reviews) = self.reviews.get() {
            reviews.with(&Reviewed { answer }).inc();
        }
    }

    /// The open feeds.
    pub(crate) fn feeds(&self) -> Vec<Arc<Feed>> {
        self.feeds.feeds()
    }
}
