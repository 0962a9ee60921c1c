//! The right of a caller to a watch that a feed may serve. It owns its data, because the agent checks it again while the watch is open,
//! after the request.

use std::sync::Arc;

use caller::reviews::{Attributes, Decision, ReviewError};
use caller::{Authorizer, HostUser};
use feeds::ReviewValidity;
use kube_wire::{ResourceRequest, Verb};
use rewrite::HostNamespace;

use crate::exchange::call::Call;
use crate::exchange::rights::with_attributes;

/// The question whether a user may watch a resource in a namespace, or in the whole virtual cluster.
pub(super) struct WatchRight {
    authz: Arc<Authorizer>,
    user: HostUser,
    verb: Verb,
    group: String,
    version: String,
    resource: String,
    name: String,
    /// The root namespace, if the watch is of the whole virtual cluster.
    namespace: HostNamespace,
}

// === impl WatchRight ===

impl WatchRight {
    /// The right that [`allowed`](crate::exchange::rights::allowed) demands of this request. With other attributes,
    /// [`extend`](Self::extend) would find no cached answer.
    pub(super) fn new(call: &Call<'_>, request: &ResourceRequest<'_>) -> Self {
        with_attributes(call, request, |attributes| {
            let Attributes { group, version, resource, name, namespace, .. } = attributes;
            let [group, version, resource, name] = [group, version, resource, name].map(str::to_owned);
            let (authz, user) = (Arc::clone(&call.services.authz), call.api.caller.host.clone());
            Self { authz, user, verb: request.verb(), group, version, resource, name, namespace: namespace.clone() }
        })
    }

    pub(super) fn namespace(&self) -> &HostNamespace {
        &self.namespace
    }

    /// Checks whether the user still has the right, and extends a permission while `validity` holds. Fails if the host does not
    /// answer the review.
    pub(super) async fn check(&self, validity: ReviewValidity) -> Result<Decision, ReviewError> {
        let decision = self.authz.check(&self.user, &self.attributes()).await?;
        self.extend(validity);
        Ok(decision)
    }

    /// Keeps a cached permission while `validity` holds, so that the next watch with the same right needs no review. Ignores a denial.
    pub(super) fn extend(&self, validity: ReviewValidity) {
        self.authz.extend(&self.user, &self.attributes(), Arc::new(move || validity.holds()));
    }

    fn attributes(&self) -> Attributes<'_> {
        Attributes {
            verb: self.verb.as_str(),
            group: &self.group,
            version: &self.version,
            resource: &self.resource,
            subresource: "",
            name: &self.name,
            namespace: &self.namespace,
        }
    }
}
