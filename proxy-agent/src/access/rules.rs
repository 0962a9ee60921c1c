//! A list of what a user may do: `SubjectRulesReviewStatus` of `k8s.io/api/authorization/v1`.

use serde::Deserialize;

/// What a user may do in a namespace, as far as the host could list it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rules {
    /// On paths that are no resources.
    #[serde(deserialize_with = "super::reviews::null_is_default")]
    pub non_resource_rules: Vec<NonResourceRule>,
    /// On resources.
    #[serde(deserialize_with = "super::reviews::null_is_default")]
    pub resource_rules: Vec<ResourceRule>,
    /// An authoriser could not say all: absence proves nothing.
    pub incomplete: bool,
}

/// One rule about paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NonResourceRule {
    /// Methods in lower case, or `*`.
    #[serde(deserialize_with = "super::reviews::null_is_default")]
    pub verbs: Vec<String>,
    /// Paths; a `*` at the end stands for any rest.
    #[serde(rename = "nonResourceURLs", deserialize_with = "super::reviews::null_is_default")]
    pub non_resource_urls: Vec<String>,
}

/// One rule about resources, in the names of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRule {
    /// Verbs, or `*`.
    #[serde(deserialize_with = "super::reviews::null_is_default")]
    pub verbs: Vec<String>,
    /// Groups, or `*`.
    #[serde(deserialize_with = "super::reviews::null_is_default")]
    pub api_groups: Vec<String>,
    /// Plurals, with `/subresource`, or `*`.
    #[serde(deserialize_with = "super::reviews::null_is_default")]
    pub resources: Vec<String>,
    /// Empty is all.
    #[serde(deserialize_with = "super::reviews::null_is_default")]
    pub resource_names: Vec<String>,
}

// === impl Rules ===

impl Rules {
    /// Whether a rule covers a path, as `NonResourceURLMatches` of `pkg/apis/rbac/v1/evaluation_helpers.go` has it.
    pub fn allow_path(&self, verb: &str, path: &str) -> bool {
        self.non_resource_rules.iter().any(|rule| {
            rule.verbs.iter().any(|covered| covered == "*" || covered == verb)
                && rule.non_resource_urls.iter().any(|covered| covers(covered, path))
        })
    }
}

fn covers(url: &str, path: &str) -> bool {
    match url.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => url == path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_at_the_end_stands_for_any_rest() {
        let rules: Rules = serde_json::from_str(
            r#"{"nonResourceRules": [
                {"verbs": ["get"], "nonResourceURLs": ["/openid/*", "/exact"]},
                {"verbs": ["*"], "nonResourceURLs": null}
            ], "resourceRules": null, "incomplete": true}"#,
        )
        .unwrap();
        assert!(rules.allow_path("get", "/openid/v1/jwks"));
        assert!(rules.allow_path("get", "/exact"));
        assert!(!rules.allow_path("post", "/exact"));
        assert!(!rules.allow_path("get", "/exact/more"));
        assert!(!rules.allow_path("get", "/openid"));
        assert!(!Rules::default().allow_path("get", "/"));
    }
}
