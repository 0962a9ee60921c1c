//! Virtual clusters whose membership has changed, until a version after the change is known.

use std::collections::HashSet;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;

use host_client::api::Api;
use hub::{ClusterId, ResourceVersion};

use crate::feed::Feed;

/// The closed virtual clusters for which no version after the change of membership is known.
pub(crate) struct Moving {
    feed: Arc<Feed>,
    api: Api,
    clusters: HashSet<ClusterId>,
    read: Option<Pending>,
}

/// A read of the version.
struct Pending {
    /// The clusters that were closed before it began.
    clusters: Vec<ClusterId>,
    version: Pin<Box<dyn Future<Output = Option<ResourceVersion>> + Send>>,
}

// === impl Moving ===

impl Moving {
    pub(crate) fn new(feed: &Arc<Feed>, api: &Api) -> Self {
        Self { feed: Arc::clone(feed), api: api.clone(), clusters: HashSet::new(), read: None }
    }

    /// The membership of these clusters has changed.
    pub(crate) fn add(&mut self, clusters: &[ClusterId]) {
        if let Some(read) = &mut self.read {
            read.clusters.retain(|cluster| !clusters.contains(cluster));
        }
        self.clusters.extend(clusters);
        self.read();
    }

    /// Reads a version after the changes so far, if there are any, and if no read is pending.
    pub(crate) fn read(&mut self) {
        if self.read.is_some() || self.clusters.is_empty() {
            return;
        }
        let (feed, api) = (Arc::clone(&self.feed), self.api.clone());
        let version = Box::pin(async move { feed.newest_version(&api).await });
        self.read = Some(Pending { clusters: self.clusters.drain().collect(), version });
    }

    /// Clusters, and a version after the change of their membership. `None` if the host does not say: then call
    /// [`Self::read`] again. Waits for ever if no read is pending. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<(Vec<ClusterId>, ResourceVersion)> {
        let Some(read) = &mut self.read else { return pending().await };
        let version = read.version.as_mut().await;
        let clusters = self.read.take().map(|read| read.clusters).unwrap_or_default();
        if let Some(version) = version {
            self.read();
            return Some((clusters, version));
        }
        self.clusters.extend(clusters);
        None
    }

    /// All clusters are listed again.
    pub(crate) fn clear(&mut self) {
        self.clusters.clear();
        self.read = None;
    }
}
