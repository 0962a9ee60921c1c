//! The labels of a host namespace that enforce a level of Pod Security.
//!
//! The rewriting engine writes them if it sees a whole Namespace. This module handles the rest: namespaces that are
//! older than the configuration of the level, and the results of patches and applies.

use rewrite::pod_security::{ENFORCE, ENFORCE_VERSION, LATEST, Level, MARK, requested_key};
use serde_json::{Map, Value};

/// The Pod Security state in the labels of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posture {
    /// The level that was configured when they were written.
    mark: Option<Level>,
    /// Whether they differ from what the level and the client's labels require.
    is_wrong: bool,
}

// === impl Posture ===

impl Posture {
    /// Reads these labels.
    pub fn of(labels: &Value) -> Self {
        let Some(mark) = text(labels, MARK) else { return Self::default() };
        let Ok(level) = mark.parse::<Level>() else { return Self { mark: None, is_wrong: true } };
        let wanted = level.labels(text(labels, &requested(ENFORCE)));
        let is_wrong = wanted.into_iter().any(|(key, value)| text(labels, key) != Some(value));
        Self { mark: Some(level), is_wrong }
    }

    /// Whether the labels are right if `level` is configured.
    pub fn is_right(self, level: Option<Level>) -> bool {
        self == Self { mark: level, is_wrong: false }
    }
}

/// The merge patch that corrects these labels if `level` is configured; `None` if they are right.
pub fn correction(labels: &Value, level: Option<Level>) -> Option<Map<String, Value>> {
    if Posture::of(labels).is_right(level) {
        return None;
    }
    let mut wanted = Map::new();
    let keys = [ENFORCE, ENFORCE_VERSION].map(|key| (key, requested(key)));
    let is_ours = text(labels, MARK).is_some();
    // The labels of a client that wrote while the level came into force are already stored under the other keys.
    let is_parked = is_ours || keys.iter().any(|(_, requested)| text(labels, requested).is_some());
    let value = |key: &str| text(labels, key).map_or(Value::Null, Value::from);
    if let Some(level) = level {
        if !is_parked {
            wanted.extend(keys.iter().map(|(key, requested)| (requested.clone(), value(key))));
        }
        let asked_for = if is_parked { text(labels, &keys[0].1) } else { text(labels, ENFORCE) };
        wanted.extend(level.labels(asked_for).map(|(key, value)| (key.to_owned(), value.into())));
    } else {
        for (key, requested) in &keys {
            wanted.insert((*key).to_owned(), value(requested));
            wanted.insert(requested.clone(), Value::Null);
        }
        wanted.insert(MARK.to_owned(), Value::Null);
    }
    wanted.retain(|key, wanted| labels.get(key).unwrap_or(&Value::Null) != wanted);
    Some(wanted)
}

/// The warning for a client whose namespace with these labels gets a stricter level than it requests.
pub fn warning(labels: &Value, level: Level) -> Option<String> {
    let requested = text(labels, &requested(ENFORCE));
    let version = text(labels, &requested_version()).filter(|version| *version != LATEST);
    let enforced = level.with_requested(requested);
    if requested.is_none_or(|requested| requested == enforced.as_str()) && version.is_none() {
        return None;
    }
    let requested = format!("{}:{}", requested.unwrap_or("the default"), version.unwrap_or(LATEST));
    Some(format!(
        "{ENFORCE}: this virtual cluster enforces at least {level}:{LATEST}; this namespace requests {requested}, and \
         {enforced}:{LATEST} is enforced"
    ))
}

fn requested(key: &str) -> String {
    requested_key(key).expect("a label that is enforced")
}

fn requested_version() -> String {
    requested(ENFORCE_VERSION)
}

fn text<'l>(labels: &'l Value, key: &str) -> Option<&'l str> {
    labels.get(key)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const REQUESTED: &str = "pod-security.kubernetes.io.parked.atoll.dev/enforce";
    const REQUESTED_VERSION: &str = "pod-security.kubernetes.io.parked.atoll.dev/enforce-version";

    fn corrected(labels: &Value, level: Option<Level>) -> Value {
        let mut labels = labels.clone();
        for (key, value) in correction(&labels, level).into_iter().flatten() {
            if value.is_null() {
                labels.as_object_mut().unwrap().remove(&key);
            } else {
                labels[key] = value;
            }
        }
        labels
    }

    #[test]
    fn a_level_is_added_changed_and_removed() {
        let before = json!({"a": "b", ENFORCE: "privileged", ENFORCE_VERSION: "v1.30"});
        let with = |mark: &str, enforced: &str| {
            json!({"a": "b", MARK: mark, ENFORCE: enforced, ENFORCE_VERSION: "latest",
                   REQUESTED: "privileged", REQUESTED_VERSION: "v1.30"})
        };
        let baseline = corrected(&before, Some(Level::Baseline));
        assert_eq!(baseline, with("baseline", "baseline"));
        assert_eq!(correction(&baseline, Some(Level::Baseline)), None);
        let restricted = corrected(&baseline, Some(Level::Restricted));
        assert_eq!(restricted, with("restricted", "restricted"));
        assert_eq!(corrected(&restricted, None), before);
        assert_eq!(correction(&before, None), None);
        let bare = corrected(&json!(null), Some(Level::Baseline).filter(|_| false));
        assert_eq!(bare, json!(null));
    }

    #[test]
    fn the_labels_of_a_patch_take_effect() {
        let mut labels = corrected(&json!({}), Some(Level::Baseline));
        labels[REQUESTED] = json!("restricted");
        assert!(!Posture::of(&labels).is_right(Some(Level::Baseline)));
        let strict = corrected(&labels, Some(Level::Baseline));
        assert_eq!((&strict[ENFORCE], &strict[REQUESTED]), (&json!("restricted"), &json!("restricted")));
        let mut lenient = strict;
        lenient.as_object_mut().unwrap().remove(REQUESTED);
        assert_eq!(corrected(&lenient, Some(Level::Baseline))[ENFORCE], "baseline");
        lenient.as_object_mut().unwrap().remove(ENFORCE);
        assert_eq!(corrected(&lenient, Some(Level::Baseline))[ENFORCE], "baseline");
        lenient[MARK] = json!("nonsense");
        assert_eq!(corrected(&lenient, Some(Level::Baseline))[MARK], "baseline");
    }

    #[test]
    fn a_client_with_a_stricter_level_is_warned() {
        let warned = |requested: Value| warning(&requested, Level::Baseline);
        for requested in
            [json!({}), json!({REQUESTED: "baseline"}), json!({REQUESTED: "restricted", REQUESTED_VERSION: "latest"})]
        {
            assert_eq!(warned(requested.clone()), None, "{requested}");
        }
        assert_eq!(
            warned(json!({REQUESTED: "privileged"})).unwrap(),
            "pod-security.kubernetes.io/enforce: this virtual cluster enforces at least baseline:latest; this namespace \
             requests privileged:latest, and baseline:latest is enforced"
        );
        assert!(
            warned(json!({REQUESTED: "restricted", REQUESTED_VERSION: "v1.20"})).unwrap().contains("restricted:v1.20")
        );
    }
}
