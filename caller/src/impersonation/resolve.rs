//! Checks whether the caller may impersonate the requested identity, and maps that identity
//! (`impersonationModeState.check` of apiserver's `pkg/endpoints/filters/impersonation/mode.go`, in its legacy mode).

use http::HeaderMap;
use kube_wire::Status;
use rewrite::{HostNamespace, Mapping};

use super::Requested;
use crate::authz::{Authorizer, Refused};
use crate::identity::host_user::{ACCOUNTS, ACCOUNTS_OF, AUTHENTICATED, UNAUTHENTICATED, member};
use crate::identity::{ANONYMOUS, Account, Caller, HostUser, Kind, headers};
use crate::reviews::{Attributes, Reviews};

const CORE: &str = "";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The effective caller of the request: the impersonated one if the headers request that and `caller` may do so, and
/// otherwise `caller`. Removes the impersonation headers.
pub async fn acting_as<R: Reviews>(
    authorizer: &Authorizer<R>,
    mapping: &Mapping,
    caller: Caller,
    headers: &mut HeaderMap,
) -> Result<Caller, Refused> {
    let requested = Requested::parse(headers);
    headers::strip(headers);
    match requested.map_err(Status::from)? {
        Some(requested) => Box::pin(requested.resolve(authorizer, mapping, &caller)).await,
        None => Ok(caller),
    }
}

// === impl Requested ===

impl Requested {
    /// Checks for each part whether `caller` may impersonate it, and builds the impersonated caller from the parts.
    ///
    /// Users, groups, uids and extra fields are checked in the cluster scope, and service accounts in their namespace.
    /// The checks use the names that the client has sent, because roles have these names in `resourceNames`.
    pub async fn resolve<R: Reviews>(
        self,
        authorizer: &Authorizer<R>,
        mapping: &Mapping,
        caller: &Caller,
    ) -> Result<Caller, Refused> {
        let root = &HostNamespace::root(mapping.cluster());
        let account = Account::parse(&self.user);
        let home = account.and_then(|account| member(mapping, account.namespace));
        let user = match (account, &home) {
            (None, _) => attributes(CORE, "users", &self.user, root),
            (Some(account), Some(home)) => attributes(CORE, "serviceaccounts", account.name, home),
            (Some(account), None) => {
                let attributes = attributes(CORE, "serviceaccounts", account.name, root);
                let why = format!("this cluster has no namespace {:?}", account.namespace);
                return Err(Refused::denied(mapping, caller, &attributes, &why));
            }
        };
        let uid = self.uid.iter().map(|uid| attributes(AUTHENTICATION, "uids", uid, root));
        let groups = self.groups.iter().map(|group| attributes(CORE, "groups", group, root));
        let extra = self.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        let extra = extra.map(|(key, value)| Attributes {
            subresource: key,
            ..attributes(AUTHENTICATION, "userextras", value, root)
        });
        // This is collected, because with a chain of closures across an await, the compiler cannot prove that the
        // future is `Send`.
        let all: Vec<_> = [user].into_iter().chain(uid).chain(groups).chain(extra).collect();
        for needed in all {
            authorizer.demand(mapping, caller, &needed).await?;
        }
        let groups = self.with_implied_groups(account);
        let Self { user, uid, extra, .. } = self;
        match HostUser::impersonated(mapping, &user, &groups, uid, extra.into_iter().collect()) {
            Ok(host) => Ok(Caller::new(host, user, Kind::Impersonated)),
            Err(error) => Err(Status::bad_request(error.to_string()).into()),
        }
    }

    /// The groups, including those that an API server adds.
    fn with_implied_groups(&self, account: Option<Account<'_>>) -> Vec<String> {
        let mut groups = self.groups.clone();
        if let (true, Some(account)) = (groups.is_empty(), account) {
            groups.extend([ACCOUNTS.to_owned(), format!("{ACCOUNTS_OF}{}", account.namespace)]);
        }
        let has = |group: &str| groups.iter().any(|given| given == group);
        if self.user == ANONYMOUS {
            groups.push(UNAUTHENTICATED.to_owned());
        } else if !has(UNAUTHENTICATED) && !has(AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        groups
    }
}

/// The attributes of the check for one part, as an API server sends them.
fn attributes<'a>(group: &'a str, resource: &'a str, name: &'a str, namespace: &'a HostNamespace) -> Attributes<'a> {
    Attributes { verb: "impersonate", group, version: "v1", resource, subresource: "", name, namespace }
}
