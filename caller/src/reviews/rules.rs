//! The non-resource rules of a user: `SubjectRulesReviewStatus` of `k8s.io/api/authorization/v1`. Rights to resources
//! are reviewed one by one.

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::null::null_is_default;

/// The maximum number of verbs and paths that are kept, and of their bytes. Kubernetes' own roles have about thirty.
/// Dropping some only reduces rights.
const MAX_TEXTS: usize = 10_000;
const MAX_BYTES: usize = 512 << 10;

/// The rights of a user in a namespace, as far as the host could list them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Rules about paths that are not resources.
    pub non_resource_rules: Vec<NonResourceRule>,
    /// The list is incomplete, because an authoriser could not list all rules, or because there were too many.
    pub incomplete: bool,
}

/// The rules in the host's answer.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RulesStatus {
    #[serde(deserialize_with = "null_is_default")]
    non_resource_rules: Bounded,
    incomplete: bool,
}

/// Rules, up to a number and size.
#[derive(Default)]
struct Bounded {
    rules: Vec<NonResourceRule>,
    has_more: bool,
}

/// One rule about paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NonResourceRule {
    /// Methods in lower case, or `*`.
    #[serde(deserialize_with = "null_is_default")]
    pub verbs: Vec<String>,
    /// Paths. A `*` at the end matches any suffix.
    #[serde(rename = "nonResourceURLs", deserialize_with = "null_is_default")]
    pub non_resource_urls: Vec<String>,
}

// === impl Rules ===

impl Rules {
    /// Whether a rule covers a path, like `NonResourceURLMatches` of `pkg/apis/rbac/v1/evaluation_helpers.go`.
    pub fn allow_path(&self, verb: &str, path: &str) -> bool {
        self.non_resource_rules.iter().any(|rule| {
            rule.verbs.iter().any(|covered| covered == "*" || covered == verb)
                && rule.non_resource_urls.iter().any(|covered| covers(covered, path))
        })
    }
}

impl<'de> Deserialize<'de> for Rules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RulesStatus { non_resource_rules: Bounded { rules, has_more }, incomplete } =
            RulesStatus::deserialize(deserializer)?;
        Ok(Self { non_resource_rules: rules, incomplete: incomplete || has_more })
    }
}

// === impl Bounded ===

impl<'de> Deserialize<'de> for Bounded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;

        impl<'de> Visitor<'de> for Elements {
            type Value = Bounded;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of rules")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Bounded, A::Error> {
                let mut bounded = Bounded::default();
                let (mut texts, mut bytes) = (0, 0);
                while let Some(rule) = elements.next_element::<NonResourceRule>()? {
                    for text in rule.verbs.iter().chain(&rule.non_resource_urls) {
                        texts += 1;
                        bytes += text.len();
                    }
                    if texts > MAX_TEXTS || bytes > MAX_BYTES {
                        bounded.has_more = true;
                        while elements.next_element::<IgnoredAny>()?.is_some() {}
                        break;
                    }
                    bounded.rules.push(rule);
                }
                Ok(bounded)
            }
        }

        deserializer.deserialize_seq(Elements)
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
    fn a_trailing_star_matches_any_suffix() {
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
