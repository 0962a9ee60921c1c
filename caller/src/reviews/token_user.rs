//! The owner of a token.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::null::null_is_default;

/// The owner of a token, in host names: `UserInfo` of `k8s.io/api/authentication/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TokenUser {
    /// The name.
    #[serde(rename = "username")]
    pub name: String,
    /// Empty if there is none.
    pub uid: String,
    /// All groups, including those that the host adds.
    #[serde(deserialize_with = "null_is_default")]
    pub groups: Vec<String>,
    /// Other information: the pod, the node, the credential.
    #[serde(deserialize_with = "null_is_default")]
    pub extra: BTreeMap<String, Vec<String>>,
}
