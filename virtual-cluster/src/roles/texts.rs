//! Texts of rules, each in memory once.
//!
//! Every virtual cluster has a copy of the aggregated roles of the host (`admin`, `edit`, `view`). Their rules are tens of
//! kilobytes long, and mostly equal in all clusters.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::role::Role;

/// Below this number of texts, those that no role has any more are kept.
const FEW: usize = 1024;

/// The texts of all known rules.
#[derive(Debug, Default)]
pub(super) struct Texts(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    texts: HashSet<Arc<str>>,
    /// At this number of texts, those that no role has any more are removed.
    full_at: usize,
}

// === impl Texts ===

impl Texts {
    /// The same role, whose rules share their texts with equal rules of other roles.
    pub(super) fn share(&self, mut role: Role) -> Role {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for rule in &mut role.rules {
            rule.text = known.share(&rule.text);
        }
        role
    }
}

// === impl Known ===

impl Known {
    fn share(&mut self, text: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        if self.texts.len() >= self.full_at {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.full_at = FEW.max(2 * self.texts.len());
        }
        self.texts.insert(Arc::clone(text));
        Arc::clone(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(resource: &str) -> Role {
        Role::of(&json!({"rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]}))
    }

    #[test]
    fn equal_rules_share_their_text() {
        let texts = Texts::default();
        let [one, same, other] = ["pods", "pods", "secrets"].map(|resource| texts.share(role(resource)));
        assert_eq!(one, role("pods"));
        assert!(Arc::ptr_eq(&one.rules[0].text, &same.rules[0].text));
        assert_ne!(one.rules[0].text, other.rules[0].text);
    }

    #[test]
    fn texts_of_former_roles_are_forgotten() {
        let texts = Texts::default();
        let kept = texts.share(role("kept"));
        for number in 0..10 * FEW {
            texts.share(role(&format!("r{number}")));
            assert!(texts.0.lock().unwrap().texts.len() <= FEW);
        }
        let again = texts.share(role("kept"));
        assert!(Arc::ptr_eq(&kept.rules[0].text, &again.rules[0].text));
    }
}
