//! The questions to the host, and its answers.

use std::sync::Arc;

use rewrite::HostNamespace;

use super::review_error::ReviewError;
use super::rules::Rules;
use super::token_user::TokenUser;
use crate::identity::HostUser;

/// Sends questions to the host.
pub trait Reviews: Send + Sync {
    /// The owner of this token. `None` if it is not valid.
    fn token_review(&self, token: &str) -> impl Future<Output = Result<Option<TokenUser>, ReviewError>> + Send;

    /// Whether `user` is allowed to do this. The agent asks with its own identity.
    fn subject_access_review(
        &self,
        user: &HostUser,
        attributes: &Attributes<'_>,
    ) -> impl Future<Output = Result<Decision, ReviewError>> + Send;

    /// The rights of `user` in a namespace. The agent asks as that user.
    fn rules_review(
        &self,
        user: &HostUser,
        namespace: &HostNamespace,
    ) -> impl Future<Output = Result<Rules, ReviewError>> + Send;
}

/// An action on a resource, in host names: `ResourceAttributes` of `k8s.io/api/authorization/v1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// `get`, `list`, `impersonate`...
    pub verb: &'a str,
    /// Empty for the core group.
    pub group: &'a str,
    /// RBAC ignores it; webhook authorisers may use it.
    pub version: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// Empty for none.
    pub subresource: &'a str,
    /// Empty for all.
    pub name: &'a str,
    /// The host namespace. For the cluster scope of a virtual cluster: its root namespace.
    pub namespace: &'a HostNamespace,
}

/// The host's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the action is allowed.
    pub allowed: bool,
    /// The reason of the authoriser, in host names. Usually empty.
    pub reason: Arc<str>,
}

impl<R: Reviews> Reviews for Arc<R> {
    fn token_review(&self, token: &str) -> impl Future<Output = Result<Option<TokenUser>, ReviewError>> + Send {
        (**self).token_review(token)
    }

    fn subject_access_review(
        &self,
        user: &HostUser,
        attributes: &Attributes<'_>,
    ) -> impl Future<Output = Result<Decision, ReviewError>> + Send {
        (**self).subject_access_review(user, attributes)
    }

    fn rules_review(
        &self,
        user: &HostUser,
        namespace: &HostNamespace,
    ) -> impl Future<Output = Result<Rules, ReviewError>> + Send {
        (**self).rules_review(user, namespace)
    }
}
