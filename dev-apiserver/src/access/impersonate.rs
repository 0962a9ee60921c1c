//! `Impersonate-*` headers: who the caller wants to be, and whether they may (`WithImpersonation` in
//! apiserver/pkg/endpoints/filters).

use http::HeaderMap;
use kube_wire::Status;

use super::rbac::{self, RequestAttributes};
use super::{AUTHENTICATED, User};
use crate::store::State;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Who the request is to be done as.
pub(crate) fn acting_as(state: &State, caller: User, headers: &HeaderMap) -> Result<User, Status> {
    let texts = |name: &str| headers.get_all(name).iter().map(text).collect::<Result<Vec<_>, Status>>();
    let mut extra = std::collections::BTreeMap::<String, Vec<String>>::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(decoded(key)).or_default().push(text(value)?);
        }
    }
    let (users, groups, uids) = (texts(USER)?, texts(GROUP)?, texts(UID)?);
    let Some(name) = users.into_iter().next().filter(|name| !name.is_empty()) else {
        if groups.is_empty() && uids.is_empty() && extra.is_empty() {
            return Ok(caller);
        }
        let message = "requested impersonation of groups, a uid or extra fields without a user";
        return Err(Status::internal_error(message));
    };
    let uid = uids.into_iter().next().unwrap_or_default();

    let account = User::parse_service_account(&name);
    match account {
        Some((namespace, account)) => {
            may(state, &caller, &RequestAttributes::impersonate("", "serviceaccounts", account).within(namespace))?;
        }
        None => may(state, &caller, &RequestAttributes::impersonate("", "users", &name))?,
    }
    for group in &groups {
        may(state, &caller, &RequestAttributes::impersonate("", "groups", group))?;
    }
    if !uid.is_empty() {
        may(state, &caller, &RequestAttributes::impersonate(AUTHENTICATION, "uids", &uid))?;
    }
    for (key, values) in &extra {
        for value in values {
            may(state, &caller, &RequestAttributes::impersonate(AUTHENTICATION, "userextras", value).below(key))?;
        }
    }

    let implied = match account {
        Some((namespace, _)) if groups.is_empty() => User::service_account_groups(namespace).to_vec(),
        _ => groups,
    };
    let mut user = User { name, uid, groups: implied, extra }.authenticated();
    // Order is what an access log or a review shows; kube-apiserver puts this one last.
    if let Some(at) = user.groups.iter().position(|group| group == AUTHENTICATED) {
        let group = user.groups.remove(at);
        user.groups.push(group);
    }
    Ok(user)
}

fn may(state: &State, caller: &User, attributes: &RequestAttributes<'_>) -> Result<(), Status> {
    rbac::allows(state, caller, attributes).then_some(()).ok_or_else(|| attributes.forbidden(caller))
}

fn text(value: &http::HeaderValue) -> Result<String, Status> {
    value.to_str().map(str::to_owned).map_err(|_| Status::bad_request("an Impersonate header is not text"))
}

/// Keys of extra fields are percent-encoded (KEP-541); what does not decode is taken as it is.
fn decoded(key: &str) -> String {
    let mut out = Vec::with_capacity(key.len());
    let bytes = key.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%').then(|| key.get(at + 1..at + 3)).flatten();
        if let Some(byte) = escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::MASTERS;
    use crate::store::Store;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn groups_given_replace_those_implied() {
        let store = Store::new();
        let master = User { name: "m".to_owned(), groups: vec![MASTERS.to_owned()], ..User::default() };
        let become_ = |pairs: &[_]| store.read(|state| acting_as(state, master.clone(), &headers(pairs)));
        let account = become_(&[(USER, "system:serviceaccount:a:b")]).unwrap();
        assert_eq!(account.groups, User::service_account_groups("a"));
        let grouped = become_(&[(USER, "system:serviceaccount:a:b"), (GROUP, "g"), ("impersonate-extra-a%2fb", "c")]);
        let grouped = grouped.unwrap();
        assert_eq!(grouped.groups, ["g", AUTHENTICATED]);
        assert_eq!(grouped.extra["a/b"], ["c"]);
        assert_eq!(become_(&[(GROUP, "g")]).unwrap_err().code, 500);
    }

    #[test]
    fn nobody_becomes_somebody_unallowed() {
        let store = Store::new();
        let refused = store.read(|state| acting_as(state, User::anonymous(), &headers(&[(USER, "x")]))).unwrap_err();
        assert_eq!(refused.code, 403);
        assert!(refused.message.contains("cannot impersonate resource \"users\""), "{refused}");
    }
}
