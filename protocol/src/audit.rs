//! The facts for the audit log of a virtual cluster that only the agent knows.
//!
//! If the proxy-server records a request, it sets [`AUDIT`]. Then the response of the agent has the other headers, each if
//! the agent knows the fact. All names are those of the virtual cluster. An agent that does not know [`AUDIT`] sends none.

use std::collections::BTreeMap;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::identity::{decode, encode};

/// Requests the facts. The value has no meaning.
pub const AUDIT: HeaderName = HeaderName::from_static("x-atoll-audit");
/// The authenticated user: a [`UserInfo`].
pub const USER: HeaderName = HeaderName::from_static("x-atoll-audit-user");
/// The user that this user impersonates: a [`UserInfo`].
pub const IMPERSONATED: HeaderName = HeaderName::from_static("x-atoll-audit-impersonated");
/// The object in the body of the request: an [`ObjectFacts`].
pub const OBJECT: HeaderName = HeaderName::from_static("x-atoll-audit-object");
/// The `metav1.Status` in the body of the response, in JSON.
pub const STATUS: HeaderName = HeaderName::from_static("x-atoll-audit-status");

/// A fact that is longer is not sent, in bytes. All facts together fit in
/// [`MAX_HEADER_LIST`](crate::settings::MAX_HEADER_LIST) beside the other headers of a response.
const MAX_FACT: usize = 32 * 1024;

/// `UserInfo` of `authentication.k8s.io/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserInfo {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Unique among users, also after a user is deleted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Further facts, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The metadata of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectFacts {
    /// The namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

/// Requests the facts about a request.
pub fn request(headers: &mut HeaderMap) {
    headers.insert(AUDIT, HeaderValue::from_static("1"));
}

/// Whether the facts are requested. Removes the header.
pub fn is_requested(headers: &mut HeaderMap) -> bool {
    headers.remove(AUDIT).is_some()
}

/// Adds a fact, unless it is too long.
pub fn write<T: Serialize>(headers: &mut HeaderMap, name: HeaderName, fact: &T) {
    if let Ok(json) = serde_json::to_string(fact) {
        write_json(headers, name, &json);
    }
}

/// Adds a fact that is JSON already, unless it is too long.
pub fn write_json(headers: &mut HeaderMap, name: HeaderName, json: &str) {
    if json.len() <= MAX_FACT {
        headers.insert(name, encode(json));
    }
}

/// A fact. `None` if the agent has not sent it.
pub fn read<T: DeserializeOwned>(headers: &HeaderMap, name: &HeaderName) -> Option<T> {
    serde_json::from_str(&read_json(headers, name)?).ok()
}

/// A fact as JSON.
pub fn read_json(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    decode(headers.get(name)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_user_survives_the_headers(
            username in ".{0,20}",
            groups in proptest::collection::vec(".{0,20}", 0..4),
            extra in proptest::collection::btree_map(".{0,10}", proptest::collection::vec(".{0,10}", 1..3), 0..3),
        ) {
            let user = UserInfo { username, uid: String::new(), groups, extra };
            let mut headers = HeaderMap::new();
            write(&mut headers, USER, &user);
            prop_assert_eq!(read(&headers, &USER), Some(user));
        }
    }

    #[test]
    fn a_long_fact_is_left_out() {
        let user = UserInfo { groups: vec!["g".repeat(MAX_FACT)], ..UserInfo::default() };
        let mut headers = HeaderMap::new();
        write(&mut headers, USER, &user);
        assert_eq!((headers.len(), read::<UserInfo>(&headers, &USER)), (0, None));
    }
}
