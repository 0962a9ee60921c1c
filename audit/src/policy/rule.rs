//! Decides what is recorded of a request.

use super::document::{GroupResources, Level, Policy, PolicyRule, Stage};

/// The facts on which the decision depends.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The user, not the one that it impersonates. Empty if nobody is authenticated.
    pub user: &'a str,
    /// The groups of the user.
    pub groups: &'a [String],
    /// The verb.
    pub verb: &'a str,
    /// The path.
    pub path: &'a str,
    /// The object. `None` if the path is no resource.
    pub object: Option<Object<'a>>,
}

/// The object of a request. Texts are empty where the request has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Object<'a> {
    /// The API group.
    pub group: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The level.
    pub level: Level,
    /// The stages that are omitted, a bit for each.
    omitted: u8,
}

/// What is recorded of a request with these attributes.
pub fn decide(policy: &Policy, attributes: &Attributes<'_>) -> Decision {
    let omitted = bits(policy.omit_stages.iter().map(|stage| **stage));
    match policy.rules.iter().find(|rule| matches(rule, attributes)) {
        Some(rule) => {
            let also = bits(rule.omit_stages.iter().map(|stage| **stage));
            Decision { level: rule.level, omitted: omitted | also }
        }
        None => Decision { level: Level::None, omitted },
    }
}

// === impl Decision ===

impl Decision {
    /// Whether a stage is recorded.
    pub fn records(self, stage: Stage) -> bool {
        self.level != Level::None && self.omitted & bit(stage) == 0
    }
}

fn bits(stages: impl Iterator<Item = Stage>) -> u8 {
    stages.fold(0, |bits, stage| bits | bit(stage))
}

fn bit(stage: Stage) -> u8 {
    match stage {
        Stage::RequestReceived => 1,
        Stage::ResponseStarted => 2,
        Stage::ResponseComplete => 4,
        Stage::Panic => 8,
    }
}

fn matches(rule: &PolicyRule, attributes: &Attributes<'_>) -> bool {
    if !rule.users.is_empty() && !has(&rule.users, attributes.user) {
        return false;
    }
    if !rule.user_groups.is_empty() && !attributes.groups.iter().any(|group| has(&rule.user_groups, group)) {
        return false;
    }
    if !rule.verbs.is_empty() && !has(&rule.verbs, attributes.verb) {
        return false;
    }
    if !rule.namespaces.is_empty() || !rule.resources.is_empty() {
        return attributes.object.is_some_and(|object| matches_object(rule, &object));
    }
    if rule.non_resource_urls.is_empty() {
        return true;
    }
    attributes.object.is_none() && rule.non_resource_urls.iter().any(|url| matches_path(url, attributes.path))
}

fn matches_object(rule: &PolicyRule, object: &Object<'_>) -> bool {
    // The namespace of an object without a namespace is the empty text.
    if !rule.namespaces.is_empty() && !has(&rule.namespaces, object.namespace) {
        return false;
    }
    rule.resources.is_empty() || rule.resources.iter().any(|of_group| matches_group(of_group, object))
}

fn matches_group(of_group: &GroupResources, object: &Object<'_>) -> bool {
    if of_group.group != "*" && of_group.group != object.group {
        return false;
    }
    if of_group.resources.is_empty() {
        return true;
    }
    let is_named = of_group.resource_names.is_empty() || has(&of_group.resource_names, object.name);
    is_named && of_group.resources.iter().any(|resource| matches_resource(resource, object))
}

/// `pods`, `pods/log`, `pods/*`, `*/scale`, `*`.
fn matches_resource(pattern: &str, object: &Object<'_>) -> bool {
    match pattern.split_once('/') {
        None => pattern == "*" || object.subresource.is_empty() && pattern == object.resource,
        Some((resource, "*")) => resource == object.resource || resource == "*" && object.subresource == "*",
        Some((resource, subresource)) => {
            !object.subresource.is_empty()
                && subresource == object.subresource
                && (resource == "*" || resource == object.resource)
        }
    }
}

/// An exact path, or one that ends with `*`.
fn matches_path(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix))
}

fn has(list: &[String], text: &str) -> bool {
    list.iter().any(|one| one == text)
}
