//! What an agent asks for when its virtual cluster becomes a member of Karmada.
//!
//! Karmada's policies place workloads by these fields, so an agent could attract those of other sites with them. The proxy-server
//! uses them only if its configuration lets the agent choose them, and checks them as it checks all input.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Fields of a member that Karmada's policies can select by (`Cluster` in Karmada's `pkg/apis/cluster/v1alpha1`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberSettings {
    /// Labels of the Cluster.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The provider of the Cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The region of the Cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The zones of the Cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
}

/// The prefix of labels that only Atoll sets.
const RESERVED: &str = "atoll.dev/";
/// A label with this prefix, or with one of its subdomains, steers Karmada itself.
const OF_KARMADA: &str = "karmada.io";

// === impl MemberSettings ===

impl MemberSettings {
    /// The maximum number of labels, and of zones.
    pub const MAX_NUMBER: usize = 16;
    /// The maximum length of the provider, the region and a zone, in bytes.
    pub const MAX_LENGTH: usize = 63;

    /// What is wrong with them, for people. `is_label` says whether a key and a value can be a label.
    pub fn mistake(&self, is_label: impl Fn(&str, &str) -> bool) -> Option<String> {
        let (labels, zones, max) = (self.labels.len(), self.zones.len(), Self::MAX_NUMBER);
        if labels > max || zones > max {
            return Some(format!("there are {labels} labels and {zones} zones, and at most {max} of each are allowed"));
        }
        if let Some((key, value)) = self.labels.iter().find(|(key, value)| is_reserved(key) || !is_label(key, value)) {
            return Some(format!("{key:?} with the value {value:?} cannot be a label of a member"));
        }
        let mut texts = self.zones.iter().chain(&self.provider).chain(&self.region);
        let wrong =
            texts.find(|text| text.is_empty() || text.len() > Self::MAX_LENGTH || text.chars().any(char::is_control));
        let max = Self::MAX_LENGTH;
        wrong
            .map(|_| format!("the provider, the region and each zone need 1 to {max} bytes without control characters"))
    }
}

/// Whether only Atoll or Karmada may set this label.
fn is_reserved(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    key.starts_with(RESERVED)
        || prefix.strip_suffix(OF_KARMADA).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(json: &str) -> MemberSettings {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn settings_are_checked() {
        let is_label = |_: &str, value: &str| value != "no label";
        let zones = format!(r#"{{"zones": [{}"z"]}}"#, r#""z","#.repeat(MemberSettings::MAX_NUMBER));
        for (json, is_valid) in [
            ("{}", true),
            (r#"{"labels": {"tier": "edge", "notkarmada.io/x": "y"}, "region": "north", "zones": ["a", "b"]}"#, true),
            (r#"{"labels": {"tier": "no label"}}"#, false),
            (r#"{"labels": {"atoll.dev/kept-by": "x"}}"#, false),
            (r#"{"labels": {"karmada.io/system": "true"}}"#, false),
            (r#"{"labels": {"cluster.karmada.io/x": "y"}}"#, false),
            (r#"{"region": ""}"#, false),
            (r#"{"provider": "a\nb"}"#, false),
            (&zones, false),
        ] {
            assert_eq!(settings(json).mistake(is_label).is_none(), is_valid, "{json}");
        }
    }

    #[test]
    fn defaults_are_not_written() {
        assert_eq!(serde_json::to_string(&MemberSettings::default()).unwrap(), "{}");
    }
}
