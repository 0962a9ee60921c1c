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

/// The names of the headers above whose facts are shortened or missing, because they are too long.
pub const TRUNCATED: HeaderName = HeaderName::from_static("x-atoll-audit-truncated");

/// A fact that is longer is shortened, or not sent, in bytes. All facts together fit in
/// [`MAX_HEADER_LIST`](crate::settings::MAX_HEADER_LIST) beside the other headers of a response.
const MAX_FACT: usize = 32 * 1024;

/// The maximum length of each text in a shortened fact, in bytes. In JSON, a byte becomes up to six, so even four fit.
const MAX_TEXT: usize = 1024;

/// A fact that can be shortened.
pub trait Fact: Serialize + Clone {
    /// Removes what is least important. Returns whether something has changed.
    fn shorten(&mut self) -> bool;
}

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

/// Adds a fact. Shortens it if it is too long, and says so.
pub fn write<T: Fact>(headers: &mut HeaderMap, name: HeaderName, fact: &T) {
    let Ok(mut json) = serde_json::to_string(fact) else { return };
    if json.len() > MAX_FACT {
        headers.append(TRUNCATED, HeaderValue::from(name.clone()));
        let mut short = fact.clone();
        while json.len() > MAX_FACT && short.shorten() {
            json = serde_json::to_string(&short).unwrap_or_default();
        }
    }
    if json.len() <= MAX_FACT {
        headers.insert(name, encode(&json));
    }
}

/// Adds a fact that is JSON already. If it is too long, says only that it is missing.
pub fn write_json(headers: &mut HeaderMap, name: HeaderName, json: &str) {
    if json.len() <= MAX_FACT {
        headers.insert(name, encode(json));
    } else {
        headers.append(TRUNCATED, HeaderValue::from(name));
    }
}

/// Whether a fact is shortened or missing, because it was too long.
pub fn is_truncated(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(TRUNCATED).iter().any(|value| value == name.as_str())
}

/// A fact. `None` if the agent has not sent it.
pub fn read<T: DeserializeOwned>(headers: &HeaderMap, name: &HeaderName) -> Option<T> {
    serde_json::from_str(&read_json(headers, name)?).ok()
}

/// A fact as JSON.
pub fn read_json(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    decode(headers.get(name)?).ok()
}

/// The beginning of a text, with whole characters.
pub fn prefix(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// Cuts a text. Returns whether it was longer.
pub fn truncate(text: &mut String, limit: usize) -> bool {
    let is_long = text.len() > limit;
    text.truncate(prefix(text, limit).len());
    is_long
}

// === impl UserInfo ===

impl Fact for UserInfo {
    /// The name and the uid say who has sent a request, so they stay.
    fn shorten(&mut self) -> bool {
        if !self.extra.is_empty() {
            self.extra.clear();
            true
        } else if !self.groups.is_empty() {
            self.groups.clear();
            true
        } else {
            truncate(&mut self.username, MAX_TEXT) | truncate(&mut self.uid, MAX_TEXT)
        }
    }
}

// === impl ObjectFacts ===

impl Fact for ObjectFacts {
    fn shorten(&mut self) -> bool {
        let texts = [&mut self.namespace, &mut self.name, &mut self.uid, &mut self.resource_version];
        texts.into_iter().fold(false, |is_shorter, text| truncate(text, MAX_TEXT) | is_shorter)
    }
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

    fn read_back<T: Fact + DeserializeOwned>(name: &HeaderName, fact: &T) -> (Option<T>, bool) {
        let mut headers = HeaderMap::new();
        write(&mut headers, name.clone(), fact);
        (read(&headers, name), is_truncated(&headers, name))
    }

    #[test]
    fn a_long_user_keeps_its_name_and_its_uid() {
        let alice = UserInfo { username: "alice".into(), uid: "u".into(), ..UserInfo::default() };
        assert_eq!(read_back(&IMPERSONATED, &alice), (Some(alice.clone()), false));
        let few: Vec<_> = (0..3).map(|number| format!("g{number}")).collect();
        let many: Vec<_> = (0..250).map(|number| format!("{number:0200}")).collect();
        let extra = BTreeMap::from([("key".to_owned(), many.clone())]);
        let with_groups = UserInfo { groups: few, ..alice.clone() };
        let long_extra = UserInfo { extra: extra.clone(), ..with_groups.clone() };
        assert_eq!(read_back(&IMPERSONATED, &long_extra), (Some(with_groups), true));
        let long_groups = UserInfo { groups: many, extra, ..alice.clone() };
        assert_eq!(read_back(&IMPERSONATED, &long_groups), (Some(alice.clone()), true));
        let long_name = UserInfo { username: "\0".repeat(MAX_FACT), ..alice };
        let (user, is_cut) = read_back(&USER, &long_name);
        assert_eq!((user.map(|user| (user.username.len(), user.uid)), is_cut), (Some((MAX_TEXT, "u".into())), true));
    }

    #[test]
    fn other_long_facts_are_marked() {
        let object = ObjectFacts { name: "é".repeat(MAX_FACT), uid: "u".into(), ..ObjectFacts::default() };
        let (short, is_cut) = read_back(&OBJECT, &object);
        let expected = ObjectFacts { name: "é".repeat(MAX_TEXT / 2), ..object };
        assert_eq!((short, is_cut), (Some(expected), true));
        let mut headers = HeaderMap::new();
        write_json(&mut headers, STATUS, &"9".repeat(MAX_FACT + 1));
        assert!(is_truncated(&headers, &STATUS) && !is_truncated(&headers, &USER) && !headers.contains_key(STATUS));
    }
}
