//! The reviews that the agent sends to the host: TokenReview, SubjectAccessReview, SelfSubjectRulesReview.
//!
//! Callers of this module use the trait [`Reviews`], so that tests need no API server. [`wire`] has the JSON.

mod host;
pub(crate) mod key;
pub mod rules;
pub mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_wire::Status;
use rewrite::HostNamespace;
use serde::{Deserialize, Deserializer, Serialize};

use crate::identity::HostUser;
use host_client::HostError;
pub use rules::Rules;

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

/// The owner of a token, in host names: `UserInfo` of `k8s.io/api/authentication/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TokenUser {
    /// The name.
    #[serde(rename = "username")]
    pub name: String,
    /// Empty if there is none.
    pub uid: String,
    /// All groups, including those that the host adds.
    #[serde(deserialize_with = "null_is_default")]
    pub groups: Vec<String>,
    /// Other information: the pod, the node, the credential.
    #[serde(deserialize_with = "null_is_default")]
    pub extra: BTreeMap<String, Vec<String>>,
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

/// The host did not answer. All tasks that wait for one answer get the same error, so the sources are in `Arc`s.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// It did not answer.
    #[error("the review cannot be sent to the host cluster")]
    Host(#[source] Arc<HostError>),
    /// It did not answer in time.
    #[error("the host cluster did not respond to the review in time")]
    Silent,
    /// It answered with an error: the agent's role lacks a right, or the host is overloaded.
    #[error("the host cluster refused the review: {code} {message}")]
    Refused {
        /// The HTTP status code.
        code: u16,
        /// The message of its `Status`, truncated.
        message: Arc<str>,
    },
    /// The answer ended early, is too large, or is not the requested object.
    #[error("the host cluster's response to the review cannot be read")]
    Unreadable(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

/// 503: nothing was executed, so clients may repeat the request. The host's message is only for the log.
impl From<&ReviewError> for Status {
    fn from(error: &ReviewError) -> Self {
        let message = match error {
            ReviewError::Host(_) | ReviewError::Silent => {
                "the host cluster did not respond to a review of this request"
            }
            ReviewError::Refused { .. } | ReviewError::Unreadable(_) => {
                "the host cluster could not review this request"
            }
        };
        Self::service_unavailable(message).with_retry_after(1)
    }
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

/// Go writes an empty list or map without `omitempty` as `null`.
pub(super) fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
