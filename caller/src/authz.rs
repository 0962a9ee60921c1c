//! The rights of callers. The host's own RBAC decides, and this module decides nothing itself.
//!
//! [`Authorizer`] sends a SubjectAccessReview and caches the answer for seconds, or for longer with [`Authorizer::extend`]. For
//! the cluster scope of a virtual cluster, it asks about the root namespace. What is *not* here: which rights a request needs
//! (`exchange` in the agent), and requests in a namespace, which the host authorises because they go upstream as the caller.
//!
//! Reading order: [`Authorizer`], `review_cache` (how long answers are cached), [`paths`] (paths that are not resources),
//! [`Refused`] (the message of a refusal).

pub mod paths;
mod refused;
mod review_cache;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use host_client::Host;
use kube_wire::Status;
use kube_wire::request_info::NonResourceRequest;
use kube_wire::status::Denied;
use rewrite::{ClusterName, HostNamespace, Mapping};
use tokio::time::sleep;

use crate::identity::{Caller, HostUser};
use crate::memo::{Accepted, Condition};
use crate::reviews::key::Key;
use crate::reviews::{Attributes, Decision, ReviewError, Reviews, Rules};
use paths::PathClass;
pub use refused::Refused;
use review_cache::ReviewCache;

/// The number of times that the agent repeats a review that is refused soon after an RBAC write. The pauses grow by
/// [`SETTLING_PAUSE`], to a second in total. Kubernetes' RBAC caches have been observed to lag by 9 ms.
pub const SETTLING_ATTEMPTS: u32 = 12;
/// See [`SETTLING_ATTEMPTS`].
pub const SETTLING_PAUSE: Duration = Duration::from_millis(13);

/// The authorisation of all virtual clusters. Each has a separate cache with a limit, so that none can evict the
/// entries of others.
#[derive(Debug)]
pub struct Authorizer<R = Host> {
    reviews: R,
    clusters: Mutex<HashMap<ClusterName, Arc<ReviewCache>>>,
    /// See [`Authorizer::reviews_sent`].
    sent: AtomicU64,
}

// === impl Authorizer ===

impl<R: Reviews> Authorizer<R> {
    /// An authorizer that sends the questions to `reviews`.
    pub fn new(reviews: R) -> Self {
        Self { reviews, clusters: Mutex::default(), sent: AtomicU64::new(0) }
    }

    /// Whether `user` is allowed to do this. Equal questions at the same time are sent once.
    pub async fn check(&self, user: &HostUser, attributes: &Attributes<'_>) -> Result<Decision, ReviewError> {
        let answers = self.cache(user.cluster());
        answers.decision(Key::of_question(user, attributes), Accepted::All, || self.send(user, attributes)).await
    }

    fn send(
        &self,
        user: &HostUser,
        attributes: &Attributes<'_>,
    ) -> impl Future<Output = Result<Decision, ReviewError>> + Send {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.reviews.subject_access_review(user, attributes)
    }

    /// The number of SubjectAccessReviews that this authorizer has sent, including failed ones.
    pub fn reviews_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Extends the cached permission: it is valid while `condition` is true, even after its normal lifetime of 4.75 s. Within that
    /// lifetime, it is valid in any case, until [`forget`](Self::forget) or [`flush`](Self::flush). Does nothing if the cached
    /// answer is a denial, or if there is none.
    ///
    /// After a change of RBAC that can affect the answer, `condition` must become false in about a second. It must not call this
    /// authorizer: the cache is locked while it runs.
    pub fn extend(&self, user: &HostUser, attributes: &Attributes<'_>, condition: Condition) {
        self.cache(user.cluster()).extend(Key::of_question(user, attributes), condition);
    }

    /// Checks that the caller is allowed to do this. Otherwise, fails with the 403 of a kube-apiserver, in virtual names. Also fails
    /// if the host does not answer. Soon after an RBAC write, it reviews a denial again, up to [`SETTLING_ATTEMPTS`] times.
    pub async fn demand(&self, mapping: &Mapping, caller: &Caller, attributes: &Attributes<'_>) -> Result<(), Refused> {
        self.settled(mapping, caller, attributes, || self.check(&caller.host, attributes)).await
    }

    /// The same, but an [extended](Self::extend) permission does not suffice.
    pub async fn demand_recent(
        &self,
        mapping: &Mapping,
        caller: &Caller,
        attributes: &Attributes<'_>,
    ) -> Result<(), Refused> {
        let (answers, key) = (self.cache(caller.host.cluster()), Key::of_question(&caller.host, attributes));
        let check = || answers.decision(key, Accepted::Recent, || self.send(&caller.host, attributes));
        self.settled(mapping, caller, attributes, check).await
    }

    /// Repeats a check that denies soon after an RBAC write.
    async fn settled<F>(
        &self,
        mapping: &Mapping,
        caller: &Caller,
        attributes: &Attributes<'_>,
        check: impl Fn() -> F,
    ) -> Result<(), Refused>
    where
        F: Future<Output = Result<Decision, ReviewError>>,
    {
        for attempt in 0.. {
            let decision = check().await?;
            if decision.allowed {
                return Ok(());
            }
            if attempt >= SETTLING_ATTEMPTS || !self.is_settling(caller.host.cluster()) {
                return Err(Refused::denied(mapping, caller, attributes, &decision.reason));
            }
            sleep(SETTLING_PAUSE * (attempt + 1)).await;
        }
        unreachable!("the last attempt returns")
    }

    /// Whether `caller` may make a request for a path that is not a resource.
    ///
    /// A SubjectAccessReview in a namespace cannot ask about such rules, but a SelfSubjectRulesReview there lists them.
    pub async fn non_resource(&self, caller: &Caller, request: &NonResourceRequest<'_>) -> Result<(), Refused> {
        let (verb, path) = (request.verb(), request.path());
        let allowed = match PathClass::of(verb, path) {
            PathClass::Public => true,
            PathClass::Authenticated => caller.is_authenticated(),
            PathClass::ByRule => {
                let root = HostNamespace::root(caller.host.cluster());
                self.rules(&caller.host, &root).await?.allow_path(verb, path)
            }
            PathClass::Never => false,
        };
        let denied = Denied::Path { user: caller.virtual_name(), verb, path };
        if allowed { Ok(()) } else { Err(Status::forbidden(denied, "").into()) }
    }

    /// All rights of `user` in a namespace, from a SelfSubjectRulesReview as that user.
    pub async fn rules(&self, user: &HostUser, namespace: &HostNamespace) -> Result<Arc<Rules>, ReviewError> {
        let answers = self.cache(user.cluster());
        let ask = async || match self.reviews.rules_review(user, namespace).await {
            Ok(rules) => Ok(Arc::new(rules)),
            // The user may not even send this review.
            Err(ReviewError::Refused { code: 403, .. }) => Ok(Arc::default()),
            Err(error) => Err(error),
        };
        answers.rules(Key::of_rules(user, namespace), ask).await
    }

    /// Forgets the answers for a virtual cluster after a write of one of its RBAC objects. For two seconds afterwards,
    /// no refusal is cached, because the host's RBAC caches may lag.
    pub fn flush(&self, cluster: &ClusterName) {
        self.cache(cluster).flush();
    }

    /// Forgets the answers for a virtual cluster, because the host has changed an RBAC object. Extended permissions stay valid while
    /// their conditions are true. Unlike [`flush`](Self::flush), this does not repeat refused reviews.
    pub fn forget(&self, cluster: &ClusterName) {
        self.cache(cluster).expire();
    }

    /// Whether an RBAC object of the cluster was written so recently that a refusal may be out of date. This includes a
    /// 403 of the host, which executed nothing.
    pub fn is_settling(&self, cluster: &ClusterName) -> bool {
        self.cache(cluster).is_settling()
    }

    /// The cache of a virtual cluster. Every user belongs to one, so there is at most one cache for each virtual
    /// cluster.
    fn cache(&self, cluster: &ClusterName) -> Arc<ReviewCache> {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answers) = clusters.get(cluster) {
            return Arc::clone(answers);
        }
        Arc::clone(clusters.entry(cluster.clone()).or_default())
    }
}
