//! The keys of a kubeconfig that are read (client-go's `tools/clientcmd/api/v1/types.go`). Other keys (preferences,
//! extensions, `disable-compression`) are ignored, as kubectl does.

use std::fmt;

use ops::secret::Secret;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::kubeconfig_error::KubeconfigError;

/// A whole file. Lists may be `null`, as `kubectl config` writes them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Document {
    pub(super) current_context: Option<String>,
    #[serde(default)]
    pub(super) clusters: Option<Vec<Named<Cluster>>>,
    #[serde(default)]
    pub(super) contexts: Option<Vec<Named<Selected>>>,
    #[serde(default)]
    pub(super) users: Option<Vec<Named<AuthInfo>>>,
}

/// An entry: `{name: NAME, cluster|context|user: VALUE}`.
#[derive(Debug)]
pub(super) struct Named<T> {
    pub(super) name: String,
    pub(super) value: Option<T>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Cluster {
    pub(super) server: String,
    pub(super) tls_server_name: Option<String>,
    pub(super) insecure_skip_tls_verify: Option<bool>,
    pub(super) certificate_authority: Option<String>,
    pub(super) certificate_authority_data: Option<Secret>,
    pub(super) proxy_url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Selected {
    pub(super) cluster: String,
    pub(super) user: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct AuthInfo {
    pub(super) client_certificate: Option<String>,
    pub(super) client_certificate_data: Option<Secret>,
    pub(super) client_key: Option<String>,
    pub(super) client_key_data: Option<Secret>,
    pub(super) token: Option<Secret>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<String>,
    pub(super) r#as: Option<Presence>,
    pub(super) as_uid: Option<Presence>,
    pub(super) as_groups: Option<Presence>,
    pub(super) as_user_extra: Option<Presence>,
    pub(super) username: Option<Presence>,
    pub(super) password: Option<Presence>,
    pub(super) auth_provider: Option<Presence>,
    pub(super) exec: Option<Presence>,
}

/// A value whose content does not matter.
#[derive(Debug)]
pub(super) struct Presence;

/// Reads a kubeconfig in YAML, which includes JSON, into any type. The error contains only the line.
pub fn yaml<T: DeserializeOwned>(content: &[u8]) -> Result<T, KubeconfigError> {
    let malformed = |line| KubeconfigError::Malformed { line };
    let text = std::str::from_utf8(content).map_err(|_| malformed(None))?;
    let options = serde_saphyr::options! {
        // A snippet of the file in an error could disclose a key in a log.
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
        // The error of the library may quote the invalid value.
        .map_err(|error| malformed(error.location().map(|place| place.line()).filter(|line| *line > 0)))
}

// === impl Document ===

impl Document {
    pub(super) fn read(content: &[u8]) -> Result<Self, KubeconfigError> {
        yaml(content)
    }
}

// === impl Presence ===

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

// === impl Named ===

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entry<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name and what it names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let mut entry = Named { name: String::new(), value: None };
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "name" => entry.name = map.next_value()?,
                        "cluster" | "context" | "user" => entry.value = map.next_value()?,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(entry)
            }
        }

        deserializer.deserialize_map(Entry(std::marker::PhantomData))
    }
}
