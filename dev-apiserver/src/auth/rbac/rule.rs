//! A rule of a role.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attributes::RequestAttributes;
use crate::object;

/// `PolicyRule` of rbac.authorization.k8s.io.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PolicyRule {
    pub(crate) verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub(crate) non_resource_urls: Vec<String>,
}

// === impl PolicyRule ===

impl PolicyRule {
    /// Reads a role's `rules`.
    pub(crate) fn all(rules: &Value) -> Vec<Self> {
        object::items(rules).iter().map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let texts = |field: &str| object::text_list(&rule[field]);
        Self {
            verbs: texts("verbs"),
            api_groups: texts("apiGroups"),
            resources: texts("resources"),
            resource_names: texts("resourceNames"),
            non_resource_urls: texts("nonResourceURLs"),
        }
    }

    /// Whether it allows a request.
    pub(crate) fn allows(&self, attributes: &RequestAttributes<'_>) -> bool {
        match *attributes {
            RequestAttributes::Path { verb, path } => {
                has(&self.verbs, verb) && self.non_resource_urls.iter().any(|url| covers_path(url, path))
            }
            RequestAttributes::Resource { verb, group, resource, subresource, name, .. } => {
                has(&self.verbs, verb)
                    && has(&self.api_groups, group)
                    && self.covers_resource(resource, subresource)
                    && (self.resource_names.is_empty()
                        || name.is_some_and(|name| self.resource_names.iter().any(|one| one == name)))
            }
        }
    }

    /// `*`, `pods`, `pods/log` or `*/scale` (`ResourceMatches` in `pkg/apis/rbac/v1/evaluation_helpers.go`).
    fn covers_resource(&self, resource: &str, subresource: Option<&str>) -> bool {
        let subresource = subresource.filter(|subresource| !subresource.is_empty());
        self.resources.iter().any(|covered| match (covered.as_str(), subresource) {
            ("*", _) => true,
            (covered, None) => covered == resource,
            (covered, Some(subresource)) => covered
                .split_once('/')
                .is_some_and(|(above, below)| below == subresource && (above == "*" || above == resource)),
        })
    }
}

fn has(listed: &[String], wanted: &str) -> bool {
    listed.iter().any(|one| one == "*" || one == wanted)
}

fn covers_path(url: &str, path: &str) -> bool {
    match url.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => url == path,
    }
}
