//! What the host is asked: TokenReview, SubjectAccessReview, SelfSubjectRulesReview.
//!
//! [`Reviews`] is what the rest of the agent sees, so that it is tested without an API server; [`wire`] is the JSON.

mod host;
pub mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_wire::Status;
use rewrite::HostNamespace;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Attributes, Decision, Rules};
use crate::host::HostError;
use crate::who::HostUser;

/// Asks the host, every time.
pub trait Reviews: Send + Sync {
    /// Whose token this is; `None` if it is nobody's, or no longer.
    fn token_review(&self, token: &str) -> impl Future<Output = Result<Option<TokenUser>, ReviewError>> + Send;

    /// Whether `user` may, asked as the agent.
    fn subject_access_review(
        &self,
        user: &HostUser,
        attributes: &Attributes<'_>,
    ) -> impl Future<Output = Result<Decision, ReviewError>> + Send;

    /// What `user` may do in a namespace, asked as that user.
    fn rules_review(
        &self,
        user: &HostUser,
        namespace: &HostNamespace,
    ) -> impl Future<Output = Result<Rules, ReviewError>> + Send;
}

/// Whom a token stands for, in the names of the host: `UserInfo` of `k8s.io/api/authentication/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TokenUser {
    /// The name.
    #[serde(rename = "username")]
    pub name: String,
    /// Empty if there is none.
    pub uid: String,
    /// Every group, those that the host adds by itself included.
    #[serde(deserialize_with = "null_is_default")]
    pub groups: Vec<String>,
    /// What else is known: the pod, the node, the credential.
    #[serde(deserialize_with = "null_is_default")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The host gave no answer. Whoever waits for the same answer gets the same error, hence the `Arc`s.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// It did not answer.
    #[error("the host cluster cannot be asked")]
    Host(#[source] Arc<HostError>),
    /// It did not answer in time.
    #[error("the host cluster does not answer")]
    Silent,
    /// It answered with an error: the agent's role lacks something, or it is overloaded.
    #[error("the host cluster refuses to answer: {code} {message}")]
    Refused {
        /// The HTTP status code.
        code: u16,
        /// The message of its `Status`, cut.
        message: Arc<str>,
    },
    /// The answer broke off, is too large, or is not what was asked for.
    #[error("the answer of the host cluster cannot be read")]
    Unreadable(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

/// 503: nothing was executed, so clients may repeat whatever it was. The host's words are for the log, not for clients.
impl From<&ReviewError> for Status {
    fn from(error: &ReviewError) -> Self {
        let what = match error {
            ReviewError::Host(_) | ReviewError::Silent => "the host cluster did not answer",
            ReviewError::Refused { .. } | ReviewError::Unreadable(_) => "the host cluster gave no answer",
        };
        Self::service_unavailable(format!("{what} when it was asked about this request")).with_retry_after(1)
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
