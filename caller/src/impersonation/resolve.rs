//! Checks whether the caller may impersonate the requested identity, and maps that identity
//! (`impersonationModeState.check` of apiserver's `pkg/endpoints/filters/impersonation/mode.go`, in its legacy mode).

use http::HeaderMap;
use kube_wire::Status;
use rewrite::{HostNamespace, Mapping};

use super::requested::Requested;
use crate::authz::{Authorizer, Refused};
use crate::identity::host_user::member;
use crate::identity::{Account, Caller, HostUser, Kind, headers};
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
        Some(requested) => Box::pin(resolve(requested, authorizer, mapping, &caller)).await,
        None => Ok(caller),
    }
}

/// Checks for each part whether `caller` may impersonate it, and builds the impersonated caller from the parts.
///
/// Users, groups, uids and extra fields are checked in the cluster scope, and service accounts in their namespace.
/// The checks use the names that the client has sent, because roles have these names in `resourceNames`.
async fn resolve<R: Reviews>(
    requested: Requested,
    authorizer: &Authorizer<R>,
    mapping: &Mapping,
    caller: &Caller,
) -> Result<Caller, Refused> {
    let root = &HostNamespace::root(mapping.cluster());
    let account = Account::parse(&requested.user);
    let home = account.and_then(|account| member(mapping, account.namespace));
    let user = match (account, &home) {
        (None, _) => attributes(CORE, "users", &requested.user, root),
        (Some(account), Some(home)) => attributes(CORE, "serviceaccounts", account.name, home),
        (Some(account), None) => {
            let attributes = attributes(CORE, "serviceaccounts", account.name, root);
            let why = format!("this cluster has no namespace {:?}", account.namespace);
            return Err(Refused::denied(mapping, caller, &attributes, &why));
        }
    };
    let uid = requested.uid.iter().map(|uid| attributes(AUTHENTICATION, "uids", uid, root));
    let groups = requested.groups.iter().map(|group| attributes(CORE, "groups", group, root));
    let extra = requested.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
    let extra = extra
        .map(|(key, value)| Attributes { subresource: key, ..attributes(AUTHENTICATION, "userextras", value, root) });
    // This is collected, because with a chain of closures across an await, the compiler cannot prove that the
    // future is `Send`.
    let all: Vec<_> = [user].into_iter().chain(uid).chain(groups).chain(extra).collect();
    for needed in all {
        authorizer.demand(mapping, caller, &needed).await?;
    }
    let groups = requested.all_groups(account);
    let Requested { user, uid, extra, .. } = requested;
    match HostUser::impersonated(mapping, &user, &groups, uid, extra.into_iter().collect()) {
        Ok(host) => Ok(Caller::new(host, user, Kind::Impersonated)),
        Err(error) => Err(Status::bad_request(error.to_string()).into()),
    }
}

/// The attributes of the check for one part, as an API server sends them.
fn attributes<'a>(group: &'a str, resource: &'a str, name: &'a str, namespace: &'a HostNamespace) -> Attributes<'a> {
    Attributes { verb: "impersonate", group, version: "v1", resource, subresource: "", name, namespace }
}
