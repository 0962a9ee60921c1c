//! What a caller may do: the host's own RBAC is asked, nothing is decided here.
//!
//! [`Access`] asks by SubjectAccessReview and remembers the answer for a moment. A question about the cluster scope of a
//! virtual cluster is asked in its root namespace. What is *not* here: which question a request is (the exchange), and
//! requests in a namespace, which go upstream as the caller and are authorised there.
//!
//! Reading order: [`reviews`] (what the host is asked), [`Access`], `answers` (how long they count), [`paths`] and
//! [`rules`] (what is no resource), [`Refused`] (how no is said), `memo` (answers that are remembered).

mod answers;
mod key;
pub(crate) mod memo;
pub mod paths;
mod refused;
pub mod reviews;
pub mod rules;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube_wire::Status;
use kube_wire::request_info::NonResourceRequest;
use kube_wire::status::Denied;
use rewrite::{ClusterName, HostNamespace, Mapping};
use tokio::time::sleep;

use crate::host::Host;
use crate::who::{Caller, HostUser};
use answers::Answers;
pub(crate) use key::Key;
use paths::PathClass;
pub use refused::Refused;
pub use reviews::{ReviewError, Reviews};
pub use rules::Rules;

/// A refusal soon after an RBAC write is asked about again this often, with pauses that grow by [`SETTLING_PAUSE`]: a second
/// in all. Kubernetes' caches have been seen to lag by 9 ms.
pub(crate) const SETTLING_ATTEMPTS: u32 = 12;
/// See [`SETTLING_ATTEMPTS`].
pub(crate) const SETTLING_PAUSE: Duration = Duration::from_millis(13);

/// The authorisation of all virtual clusters. What is remembered is bounded for each of them, so that none lives at the
/// cost of another.
#[derive(Debug)]
pub struct Access<R = Host> {
    reviews: R,
    clusters: Mutex<HashMap<ClusterName, Arc<Answers>>>,
}

/// What somebody wants to do to a resource, in the names of the host: `ResourceAttributes` of
/// `k8s.io/api/authorization/v1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// `get`, `list`, `impersonate`...
    pub verb: &'a str,
    /// Empty is the core group.
    pub group: &'a str,
    /// RBAC does not look at it; webhook authorisers may.
    pub version: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// Empty is none.
    pub subresource: &'a str,
    /// Empty is all.
    pub name: &'a str,
    /// Where. For the cluster scope of a virtual cluster: its root namespace.
    pub namespace: &'a HostNamespace,
}

/// The host's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Yes or no.
    pub allowed: bool,
    /// What the authoriser says to it, in host names; mostly empty.
    pub reason: Arc<str>,
}

// === impl Access ===

impl<R: Reviews> Access<R> {
    /// Asks `reviews`.
    pub fn new(reviews: R) -> Self {
        Self { reviews, clusters: Mutex::default() }
    }

    /// Whether `user` may. Equal questions at the same time are asked once.
    pub async fn check(&self, user: &HostUser, attributes: &Attributes<'_>) -> Result<Decision, ReviewError> {
        let answers = self.answers(user.cluster());
        let ask = || self.reviews.subject_access_review(user, attributes);
        answers.decision(Key::of_question(user, attributes), ask).await
    }

    /// The same, and if not, the 403 of a kube-apiserver in the names of the virtual cluster. Soon after an RBAC write no
    /// is asked about again.
    pub async fn demand(&self, mapping: &Mapping, caller: &Caller, attributes: &Attributes<'_>) -> Result<(), Refused> {
        for attempt in 0.. {
            let decision = self.check(&caller.host, attributes).await?;
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

    /// Whether `caller` may make a request for a path that is no resource.
    ///
    /// Such rules cannot be asked for by a review in a namespace, but are listed by one (SelfSubjectRulesReview).
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

    /// All that `user` may do in a namespace, as SelfSubjectRulesReview lists it, asked as that user.
    pub async fn rules(&self, user: &HostUser, namespace: &HostNamespace) -> Result<Arc<Rules>, ReviewError> {
        let answers = self.answers(user.cluster());
        let ask = async || match self.reviews.rules_review(user, namespace).await {
            Ok(rules) => Ok(Arc::new(rules)),
            // The user may not even ask what it may do.
            Err(ReviewError::Refused { code: 403, .. }) => Ok(Arc::default()),
            Err(error) => Err(error),
        };
        answers.rules(Key::of_rules(user, namespace), ask).await
    }

    /// Forgets what was answered for a virtual cluster, because an RBAC object of it was written. For two seconds
    /// afterwards no refusal is remembered, since the host's own RBAC caches may lag.
    pub fn flush(&self, cluster: &ClusterName) {
        self.answers(cluster).flush();
    }

    /// Whether an RBAC object of the cluster was written so recently that a refusal (also a 403 of the host, which
    /// executed nothing) may be out of date.
    pub fn is_settling(&self, cluster: &ClusterName) -> bool {
        self.answers(cluster).is_settling()
    }

    /// There are as many as virtual clusters that are served: a user cannot be made without one.
    fn answers(&self, cluster: &ClusterName) -> Arc<Answers> {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answers) = clusters.get(cluster) {
            return Arc::clone(answers);
        }
        Arc::clone(clusters.entry(cluster.clone()).or_default())
    }
}
