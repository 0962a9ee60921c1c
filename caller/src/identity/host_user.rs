//! Somebody on the host.
//!
//! A value of this type is either a service account of the host whose namespace belongs to a virtual cluster, or has a
//! name that begins with that cluster's `vc:<cluster>:`. Nothing else can be built, so nothing else can be impersonated.

use std::collections::HashSet;
use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use rewrite::{ClusterName, HostNamespace, Mapping, VirtualNamespace};

use super::account::Account;
use super::headers::{self, Inexpressible};
pub use super::names::{ACCOUNTS, ACCOUNTS_OF, AUTHENTICATED, UNAUTHENTICATED};
use super::names::{ANONYMOUS, attempt_group};

/// A user in the names of the host, every part of which can be written as an HTTP header. Clones are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostUser(Arc<Parts>);

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    cluster: ClusterName,
    name: String,
    groups: Vec<String>,
    uid: Option<String>,
    extra: Vec<(String, Vec<String>)>,
    /// The headers that say so to the host. Every request of the user has them, so they are made once.
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Distinct groups, in order. A client can name many, so a set finds duplicates.
#[derive(Default)]
struct Groups {
    ordered: Vec<String>,
    present: HashSet<String>,
}

// === impl HostUser ===

impl HostUser {
    /// The virtual cluster that the user is of.
    pub fn cluster(&self) -> &ClusterName {
        &self.0.cluster
    }

    /// The same with the right to [attempt](super::ATTEMPT) a grant.
    #[must_use]
    pub fn attempting(&self) -> Self {
        let Parts { cluster, name, groups, uid, extra, .. } = &*self.0;
        let groups: Vec<_> = groups.iter().cloned().chain([attempt_group(cluster)]).collect();
        let headers = headers::of(name, &groups, uid.as_deref(), extra);
        let headers = headers.expect("the user has such headers already, and the group consists of visible ASCII");
        let (cluster, name, uid, extra) = (cluster.clone(), name.clone(), uid.clone(), extra.clone());
        Self(Arc::new(Parts { cluster, name, groups, uid, extra, headers }))
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

    /// What else is known, by key.
    pub fn extra(&self) -> &[(String, Vec<String>)] {
        &self.0.extra
    }

    /// Whether the user is in `system:authenticated` of the host.
    pub fn is_authenticated(&self) -> bool {
        self.0.groups.iter().any(|group| group == AUTHENTICATED)
    }

    /// Somebody whom a certificate or a token names: the prefix stands before the name and before each group, whatever
    /// they look like.
    pub(crate) fn stranger(
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

    /// A service account that the host itself named, in a namespace of the virtual cluster.
    pub(crate) fn account(
        mapping: &Mapping,
        name: &str,
        groups: &[String],
        uid: Option<String>,
        extra: Vec<(String, Vec<String>)>,
    ) -> Result<Self, Inexpressible> {
        let mut mapped = Groups::default();
        for group in groups {
            // A service account is in these alone. Should something on the host say more, that is for the host only.
            if matches!(&**group, AUTHENTICATED | ACCOUNTS) {
                // In their places: the virtual cluster shows its own in the order of the host's.
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

    /// Nobody. The host's own `system:unauthenticated` keeps it from adding `system:authenticated` to an impersonated
    /// user (`pkg/endpoints/filters/impersonation` in apiserver).
    pub(crate) fn anonymous(mapping: &Mapping) -> Self {
        let mut groups = Groups::default();
        groups.add(own(mapping, UNAUTHENTICATED));
        groups.add(UNAUTHENTICATED);
        Self::new(mapping, own(mapping, ANONYMOUS), groups, None, Vec::new()).expect("these names are visible ASCII")
    }

    /// Somebody that a caller may act as. `account` is the host name of a service account, if it is one whose namespace
    /// belongs to the virtual cluster; `groups` are virtual, with those that an API server adds.
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
        // As the host itself would have it: who acts as a service account is one to the host, too.
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
        let headers = headers::of(&name, &groups, uid.as_deref(), &extra)?;
        Ok(Self(Arc::new(Parts { cluster: mapping.cluster().clone(), name, groups, uid, extra, headers })))
    }

    /// Makes a request one of this user's: removes every header of a client that says who somebody is, then sets ours,
    /// as client-go does (`transport/round_trippers.go`).
    pub fn write(&self, headers: &mut HeaderMap) {
        headers::strip(headers);
        headers.reserve(self.0.headers.len());
        for (name, value) in &self.0.headers {
            headers.append(name, value.clone());
        }
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

/// The host's namespace of that virtual name, if there is one and it belongs to the virtual cluster.
pub(crate) fn member(mapping: &Mapping, namespace: &str) -> Option<HostNamespace> {
    let host = mapping.host(&VirtualNamespace::new(namespace).ok()?).ok()?;
    mapping.member(host.as_ref()).is_some().then_some(host)
}

/// With the prefix of the virtual cluster, which makes it nobody's on the host.
fn own(mapping: &Mapping, name: &str) -> String {
    format!("{}{name}", mapping.identity_prefix())
}
