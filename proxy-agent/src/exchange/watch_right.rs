//! The right of a caller to a watch that a feed serves. The question lasts longer than the request: the agent asks it again while
//! the watch is open.

use std::sync::Arc;

use caller::reviews::{Attributes, Decision, ReviewError};
use caller::{Authorizer, HostUser};
use feeds::Validity;
use kube_wire::{ResourceRequest, Verb};
use rewrite::HostNamespace;

use crate::exchange::api_request::NamespaceLocation;
use crate::exchange::call::Call;
use crate::exchange::rights::host_role;

/// Whether a user may watch objects in a namespace, or in the whole virtual cluster.
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
    /// The right that [`allowed`](crate::exchange::rights::allowed) demands of this request.
    pub(super) fn new(call: &Call<'_>, request: &ResourceRequest<'_>) -> Self {
        let role = host_role(call, request);
        let member = match request.namespace().map(|name| call.api.locate(name)) {
            Some(NamespaceLocation::Member(host)) => Some(host),
            _ => None,
        };
        let attributes = match &member {
            Some(host) => call.api.attributes_in(request, host),
            None => call.api.attributes(request),
        };
        let Attributes { group, version, resource, name, .. } = attributes;
        let [group, version, resource] = [group, version, resource].map(str::to_owned);
        Self {
            authz: Arc::clone(&call.services.authz),
            user: call.api.caller.host.clone(),
            verb: request.verb(),
            group,
            version,
            resource,
            name: if member.is_some() { name.to_owned() } else { role.unwrap_or_else(|| name.to_owned()) },
            namespace: member.unwrap_or_else(|| call.api.cluster.root.clone()),
        }
    }

    pub(super) fn namespace(&self) -> &HostNamespace {
        &self.namespace
    }

    /// Asks whether the user still has the right. `validity` is that of the answer.
    pub(super) async fn check(&self, validity: Validity) -> Result<Decision, ReviewError> {
        let decision = self.authz.check(&self.user, &self.attributes()).await?;
        self.extend(validity);
        Ok(decision)
    }

    /// The user has the right. The next watch with the same right needs no review while the validity lasts.
    pub(super) fn extend(&self, validity: Validity) {
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
