//! Users of the host.
//!
//! A value of this type is either a service account of the host whose namespace belongs to a virtual cluster, or has a
//! name that begins with that cluster's `vc:<cluster>:`. No other value can be built, so no other user can be
//! impersonated.

use std::collections::HashSet;
use std::sync::Arc;

use http::header::HeaderMap;
use rewrite::{ClusterName, HostNamespace, Mapping, VirtualNamespace};

use super::account::Account;
use super::headers::{self, Inexpressible};
pub use super::names::{ACCOUNTS, ACCOUNTS_OF, AUTHENTICATED, UNAUTHENTICATED};
use super::names::{ANONYMOUS, attempt_group};

/// A user in host names, all of whose parts can be written in HTTP headers. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostUser(Arc<Identity>);

#[derive(Debug, PartialEq, Eq)]
struct Identity {
    cluster: ClusterName,
    name: String,
    groups: Vec<String>,
    uid: Option<String>,
    extra: Vec<(String, Vec<String>)>,
    /// The impersonation headers. Every request of the user has them, so they are built once.
    headers: HeaderMap,
}

/// Distinct groups, in order. A client can name many, so a set finds duplicates.
#[derive(Default)]
struct Groups {
    ordered: Vec<String>,
    present: HashSet<String>,
}

// === impl HostUser ===

impl HostUser {
    /// The virtual cluster of the user.
    pub fn cluster(&self) -> &ClusterName {
        &self.0.cluster
    }

    /// The same user with the right to [attempt](super::ATTEMPT) a grant.
    #[must_use]
    pub fn attempting(&self) -> Self {
        let Identity { cluster, name, groups, uid, extra, .. } = &*self.0;
        let groups: Vec<_> = groups.iter().cloned().chain([attempt_group(cluster)]).collect();
        let headers = headers::of(name, &groups, uid.as_deref(), extra);
        let headers = headers.expect("the user has such headers already, and the group consists of visible ASCII");
        let headers = headers.into_iter().collect();
        let (cluster, name, uid, extra) = (cluster.clone(), name.clone(), uid.clone(), extra.clone());
        Self(Arc::new(Identity { cluster, name, groups, uid, extra, headers }))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// All groups.
    pub fn groups(&self) -> &[String] {
        &self.0.groups
    }

    /// The uid, if there is one.
    pub fn uid(&self) -> Option<&str> {
        self.0.uid.as_deref()
    }

    /// The extra fields, by key.
    pub fn extra(&self) -> &[(String, Vec<String>)] {
        &self.0.extra
    }

    /// Whether the user is in `system:authenticated` of the host.
    pub fn is_authenticated(&self) -> bool {
        self.0.groups.iter().any(|group| group == AUTHENTICATED)
    }

    /// The user of a certificate or token. The name and each group get the prefix, whatever their form.
    pub(crate) fn prefixed(
        mapping: &Mapping,
        name: &str,
        groups: &[String],
        uid: Option<String>,
        extra: Vec<(String, Vec<String>)>,
    ) -> Result<Self, Inexpressible> {
        let mut mapped = Groups::default();
        for group in groups {
            mapped.add(own(mapping, group));
        }
        mapped.add(own(mapping, AUTHENTICATED));
        mapped.add(AUTHENTICATED);
        Self::new(mapping, own(mapping, name), mapped, uid, extra)
    }

    /// A service account of the host, in a namespace of the virtual cluster.
    pub(crate) fn account(
        mapping: &Mapping,
        name: &str,
        groups: &[String],
        uid: Option<String>,
        extra: Vec<(String, Vec<String>)>,
    ) -> Result<Self, Inexpressible> {
        let mut mapped = Groups::default();
        for group in groups {
            // A service account has only these groups. Further groups on the host have no effect in the virtual
            // cluster.
            if matches!(&**group, AUTHENTICATED | ACCOUNTS) {
                // In the order of the host, in which the virtual cluster shows them.
                mapped.add(own(mapping, group));
                mapped.add(group.clone());
            } else if group.strip_prefix(ACCOUNTS_OF).is_some_and(|of| mapping.member(of.as_bytes()).is_some()) {
                mapped.add(group.clone());
            }
        }
        mapped.add(own(mapping, ACCOUNTS));
        mapped.add(own(mapping, AUTHENTICATED));
        mapped.add(AUTHENTICATED);
        Self::new(mapping, name.to_owned(), mapped, uid, extra)
    }

    /// The anonymous user. The host's own `system:unauthenticated` keeps it from adding `system:authenticated` to an
    /// impersonated user (`pkg/endpoints/filters/impersonation` in apiserver).
    pub(crate) fn anonymous(mapping: &Mapping) -> Self {
        let mut groups = Groups::default();
        groups.add(own(mapping, UNAUTHENTICATED));
        groups.add(UNAUTHENTICATED);
        Self::new(mapping, own(mapping, ANONYMOUS), groups, None, Vec::new()).expect("these names are visible ASCII")
    }

    /// A user that a caller may impersonate. `account` is the host name of a service account, if it is one whose
    /// namespace belongs to the virtual cluster; `groups` are virtual, with those that an API server adds.
    pub fn impersonated(
        mapping: &Mapping,
        name: &str,
        groups: &[String],
        uid: Option<String>,
        extra: Vec<(String, Vec<String>)>,
    ) -> Result<Self, Inexpressible> {
        let account = Account::parse(name).and_then(|account| {
            let namespace = member(mapping, account.namespace)?;
            Some(Account { namespace: namespace.as_str(), ..account }.to_string())
        });
        let mut mapped = Groups::default();
        for group in groups {
            let accounts_of = group.strip_prefix(ACCOUNTS_OF).and_then(|of| member(mapping, of));
            mapped.add(match accounts_of {
                Some(namespace) => format!("{ACCOUNTS_OF}{namespace}"),
                None => own(mapping, group),
            });
        }
        // As on the host: if a caller impersonates a service account, the host treats it as that service account.
        for group in [AUTHENTICATED, UNAUTHENTICATED, ACCOUNTS] {
            if groups.iter().any(|given| given == group) && (group != ACCOUNTS || account.is_some()) {
                mapped.add(group);
            }
        }
        Self::new(mapping, account.unwrap_or_else(|| own(mapping, name)), mapped, uid, extra)
    }

    fn new(
        mapping: &Mapping,
        name: String,
        groups: Groups,
        uid: Option<String>,
        extra: Vec<(String, Vec<String>)>,
    ) -> Result<Self, Inexpressible> {
        let (uid, groups) = (uid.filter(|uid| !uid.is_empty()), groups.ordered);
        let headers = headers::of(&name, &groups, uid.as_deref(), &extra)?.into_iter().collect();
        Ok(Self(Arc::new(Identity { cluster: mapping.cluster().clone(), name, groups, uid, extra, headers })))
    }

    /// Makes this the user of a request: removes all identity headers of the client, and sets ours, as client-go does
    /// (`transport/round_trippers.go`).
    pub fn write(&self, headers: &mut HeaderMap) {
        headers::strip(headers);
        headers.extend(self.headers());
    }

    /// The headers that make a request one of this user's. A request must have no others that say who somebody is.
    pub fn headers(&self) -> HeaderMap {
        self.0.headers.clone()
    }
}

// === impl Groups ===

impl Groups {
    fn add(&mut self, group: impl Into<String> + AsRef<str>) {
        if !self.present.contains(group.as_ref()) {
            let group = group.into();
            self.present.insert(group.clone());
            self.ordered.push(group);
        }
    }
}

/// The host namespace with this virtual name, if it exists and belongs to the virtual cluster.
pub(crate) fn member(mapping: &Mapping, namespace: &str) -> Option<HostNamespace> {
    let host = mapping.host(&VirtualNamespace::new(namespace).ok()?).ok()?;
    mapping.member(host.as_ref()).is_some().then_some(host)
}

/// With the prefix of the virtual cluster, so that it has no rights of the host.
fn own(mapping: &Mapping, name: &str) -> String {
    format!("{}{name}", mapping.identity_prefix())
}
