//! The keys of a `Policy` (`pkg/apis/audit/v1/types.go` in apiserver).

use std::path::Path;

use kube_wire::name::dns_subdomain;
use ops::config::{ConfigErrors, Document, Located, Problems, Unread};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What is recorded of which requests.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The first rule that matches a request is used. A request that none matches is not recorded.
    pub(super) rules: Vec<Located<PolicyRule>>,
    #[serde(default)]
    pub(super) omit_stages: Vec<Located<Stage>>,
    /// Without an effect, because bodies are not recorded.
    #[serde(default)]
    #[expect(dead_code, reason = "it is only accepted")]
    omit_managed_fields: bool,
    /// The name of the policy is not used.
    #[serde(default)]
    #[expect(dead_code, reason = "it is only accepted")]
    metadata: Option<IgnoredAny>,
}

/// One rule. Each list that is not empty must match.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyRule {
    pub(super) level: Level,
    #[serde(default)]
    pub(super) users: Vec<String>,
    #[serde(default)]
    pub(super) user_groups: Vec<String>,
    #[serde(default)]
    pub(super) verbs: Vec<String>,
    #[serde(default)]
    pub(super) resources: Vec<Located<GroupResources>>,
    #[serde(default)]
    pub(super) namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    pub(super) non_resource_urls: Vec<Located<String>>,
    #[serde(default)]
    pub(super) omit_stages: Vec<Located<Stage>>,
    #[serde(default)]
    #[expect(dead_code, reason = "it is only accepted")]
    omit_managed_fields: Option<bool>,
}

/// Resources of one API group.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GroupResources {
    pub(super) group: String,
    pub(super) resources: Vec<String>,
    pub(super) resource_names: Vec<String>,
}

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Level {
    /// Nothing.
    None,
    /// The facts about the request and its response.
    Metadata,
    /// Also the body of the request: not supported.
    Request,
    /// Also the body of the response: not supported.
    RequestResponse,
}

/// A moment in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Stage {
    /// The request has arrived.
    RequestReceived,
    /// The head of the response is sent, and the body may last: a watch, an exec.
    ResponseStarted,
    /// The response has ended.
    ResponseComplete,
    /// Never recorded: a panic does not reach the client as a response.
    Panic,
}

// === impl Policy ===

impl Document for Policy {
    const KIND: &'static str = "Policy";
    const API_VERSION: &'static str = "audit.k8s.io/v1";

    fn read(document: Unread<'_>) -> Result<Self, Problems> {
        document.read()
    }

    fn check(&self, problems: &mut Problems) {
        if self.rules.is_empty() {
            problems.general("the policy has no rules, so it would record nothing");
        }
        for rule in &self.rules {
            rule.check(rule, problems);
        }
    }
}

impl Policy {
    /// Reads a file. `origin` is its name, for errors.
    pub fn parse(text: &[u8], origin: &Path) -> Result<Self, ConfigErrors> {
        ops::config::parse(&String::from_utf8_lossy(text), origin)
    }

    /// The policy of a cluster without a file: `Metadata` of all requests, without the stage `RequestReceived`.
    pub fn metadata() -> Self {
        let rules = vec![PolicyRule::everything(Level::Metadata).into()];
        Self { rules, omit_stages: vec![Stage::RequestReceived.into()], ..Self::default() }
    }
}

// === impl PolicyRule ===

impl PolicyRule {
    /// A rule that matches every request.
    fn everything(level: Level) -> Self {
        Self {
            level,
            users: Vec::new(),
            user_groups: Vec::new(),
            verbs: Vec::new(),
            resources: Vec::new(),
            namespaces: Vec::new(),
            non_resource_urls: Vec::new(),
            omit_stages: Vec::new(),
            omit_managed_fields: None,
        }
    }

    fn check(&self, rule: &Located<Self>, problems: &mut Problems) {
        if matches!(self.level, Level::Request | Level::RequestResponse) {
            problems.at(
                rule,
                format_args!(
                    "level {:?} is not supported: bodies pass through the proxy-server as streams, and it keeps none; use level \
                     Metadata",
                    self.level
                ),
            );
        }
        for url in &self.non_resource_urls {
            if **url == "*" {
                continue;
            }
            if !url.starts_with('/') {
                problems.at(url, format_args!("nonResourceURLs: `{url}` must begin with `/`"));
            }
            if url.strip_suffix('*').unwrap_or(url).contains('*') {
                problems.at(url, format_args!("nonResourceURLs: in `{url}`, `*` must be the last character"));
            }
        }
        for of_group in &self.resources {
            if !matches!(of_group.group.as_str(), "" | "*") && dns_subdomain(&of_group.group).is_err() {
                problems.at(of_group, format_args!("`{}` is not the name of an API group", of_group.group));
            }
            if !of_group.resource_names.is_empty() && of_group.resources.is_empty() {
                problems.at(of_group, "resourceNames need `resources`");
            }
        }
        let has_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if has_resources && !self.non_resource_urls.is_empty() {
            problems.at(rule, "a rule cannot have both nonResourceURLs and resources or namespaces");
        }
    }
}
