//! Authentication and authorization.
//!
//! A client certificate or the token of a service account identifies a [`User`] ([`authn`]), which may impersonate another
//! one ([`impersonate`]). The roles and bindings in the store authorize it ([`rbac`]).

pub(crate) mod authn;
pub(crate) mod builtin;
pub(crate) mod impersonate;
pub(crate) mod rbac;
pub(crate) mod tokens;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `UserInfo` of authentication.k8s.io.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct User {
    /// `system:serviceaccount:NAMESPACE:NAME` for service accounts.
    #[serde(rename = "username", skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

/// The group of all authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of all other users.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that is authorized for everything without roles (apiserver's privileged group authorizer).
pub(crate) const MASTERS: &str = "system:masters";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
const ANONYMOUS: &str = "system:anonymous";

// === impl User ===

impl User {
    /// The user of requests without credentials.
    pub(crate) fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// A service account, with its groups.
    pub(crate) fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            name: format!("{SERVICE_ACCOUNT}{namespace}:{name}"),
            groups: Self::service_account_groups(namespace).to_vec(),
            ..Self::default()
        }
    }

    /// The groups of all service accounts of a namespace.
    pub(crate) fn service_account_groups(namespace: &str) -> [String; 3] {
        [SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}"), AUTHENTICATED.to_owned()]
    }

    /// Namespace and name, if this is the user name of a service account.
    pub(crate) fn parse_service_account(name: &str) -> Option<(&str, &str)> {
        let (namespace, name) = name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
        (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
    }

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// Adds `system:authenticated`, except to the anonymous user.
    #[must_use]
    pub(crate) fn authenticated(mut self) -> Self {
        let is_exempt = self.is_in(AUTHENTICATED) || self.is_in(UNAUTHENTICATED) || self.name == ANONYMOUS;
        if !is_exempt {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}
