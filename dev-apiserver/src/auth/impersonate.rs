//! Impersonation: the `Impersonate-*` headers, and the rights that they require (`WithImpersonation` in
//! `apiserver/pkg/endpoints/filters`).

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

/// The user with whose rights the request is executed.
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
        let message = "requested impersonation of groups, a UID or extra fields without impersonating a user name";
        return Err(Status::bad_request(message));
    };
    let uid = uids.into_iter().next().unwrap_or_default();

    let account = User::parse_service_account(&name);
    match account {
        Some((namespace, account)) => {
            check(state, &caller, &RequestAttributes::impersonate("", "serviceaccounts", account).within(namespace))?;
        }
        None => check(state, &caller, &RequestAttributes::impersonate("", "users", &name))?,
    }
    for group in &groups {
        check(state, &caller, &RequestAttributes::impersonate("", "groups", group))?;
    }
    if !uid.is_empty() {
        check(state, &caller, &RequestAttributes::impersonate(AUTHENTICATION, "uids", &uid))?;
    }
    for (key, values) in &extra {
        for value in values {
            check(state, &caller, &RequestAttributes::impersonate(AUTHENTICATION, "userextras", value).below(key))?;
        }
    }

    let implied = match account {
        Some((namespace, _)) if groups.is_empty() => User::service_account_groups(namespace).to_vec(),
        _ => groups,
    };
    let mut user = User { name, uid, groups: implied, extra }.authenticated();
    // kube-apiserver appends this group as the last one. The order is visible in reviews.
    if let Some(at) = user.groups.iter().position(|group| group == AUTHENTICATED) {
        let group = user.groups.remove(at);
        user.groups.push(group);
    }
    Ok(user)
}

fn check(state: &State, caller: &User, attributes: &RequestAttributes<'_>) -> Result<(), Status> {
    rbac::allows(state, caller, attributes).then_some(()).ok_or_else(|| attributes.forbidden(caller))
}

fn text(value: &http::HeaderValue) -> Result<String, Status> {
    value
        .to_str()
        .map(str::to_owned)
        .map_err(|_| Status::bad_request("the value of an Impersonate header must be text"))
}

/// Decodes the key of an extra field (`unescapeExtraKey` in apiserver). A key that cannot be decoded is used unchanged.
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
    use crate::auth::MASTERS;
    use crate::store::Store;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn requested_groups_replace_implied_ones() {
        let store = Store::new();
        let master = User { name: "m".to_owned(), groups: vec![MASTERS.to_owned()], ..User::default() };
        let impersonated = |pairs: &[_]| store.read(|state| acting_as(state, master.clone(), &headers(pairs)));
        let account = impersonated(&[(USER, "system:serviceaccount:a:b")]).unwrap();
        assert_eq!(account.groups, User::service_account_groups("a"));
        let grouped =
            impersonated(&[(USER, "system:serviceaccount:a:b"), (GROUP, "g"), ("impersonate-extra-a%2fb", "c")]);
        let grouped = grouped.unwrap();
        assert_eq!(grouped.groups, ["g", AUTHENTICATED]);
        assert_eq!(grouped.extra["a/b"], ["c"]);
        assert_eq!(impersonated(&[(GROUP, "g")]).unwrap_err().code, 400);
    }

    #[test]
    fn impersonation_requires_rights() {
        let store = Store::new();
        let refused = store.read(|state| acting_as(state, User::anonymous(), &headers(&[(USER, "x")]))).unwrap_err();
        assert_eq!(refused.code, 403);
        assert!(refused.message.contains("cannot impersonate resource \"users\""), "{refused}");
    }
}
