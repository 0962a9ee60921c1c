//! What the agent knows about the answer to a review.

use rewrite::request::OriginalAttributes;
use rewrite::{HostNamespace, Mapping};
use serde::Deserialize as _;
use serde_json::{Value, json};

use caller::authn::{HostTokens, shown};
use caller::reviews::TokenUser;
use virtual_cluster::provisioner::MIRROR_PREFIX;

/// How to answer a review.
#[derive(Debug)]
pub(crate) struct ReviewAnswer {
    pub(crate) ruling: Ruling,
    /// The namespace in which questions about the whole cluster were asked.
    pub(crate) root: HostNamespace,
    /// The parts of the question to restore in the answer.
    pub(crate) about: OriginalAttributes,
    /// The host tokens that the virtual cluster accepts.
    pub(crate) host_tokens: Option<HostTokens>,
}

/// Which answer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// The host's.
    Host,
    /// The agent's, because it knows the rules about paths.
    Agent(bool),
    /// The host's if it is negative. Otherwise it is denied for this reason, because no role can allow it.
    Withheld(&'static str),
    /// It is denied for this reason.
    Denied(&'static str),
    /// The host's, if the token is of this virtual cluster.
    Token,
}

/// RBAC's text before the name of a binding in a namespace (`RuleAllows` and `ruleAccumulator` in
/// plugin/pkg/auth/authorizer/rbac/rbac.go: `RBAC: allowed by RoleBinding "name/namespace" of ...`).
const BY_BINDING: &str = "allowed by RoleBinding \"";

/// The message of an API server for an unknown token (`apiserver/pkg/authentication/request/bearertoken`).
const INVALID_TOKEN: &str = "invalid bearer token";

// === impl ReviewAnswer ===

impl ReviewAnswer {
    /// Turns the host's `status` into that of the virtual cluster.
    pub(super) fn judge(&self, mapping: &Mapping, status: &mut Value) -> serde_json::Result<()> {
        match self.ruling {
            Ruling::Host => {}
            Ruling::Agent(true) => *status = json!({"allowed": true}),
            Ruling::Agent(false) => *status = json!({"allowed": false}),
            Ruling::Withheld(_) if status["allowed"] != true => {}
            Ruling::Withheld(why) | Ruling::Denied(why) => {
                *status = json!({"allowed": false, "denied": true, "reason": why});
            }
            Ruling::Token => identified(mapping, self.host_tokens.as_ref(), status)?,
        }
        if let Some(Value::String(reason)) = status.get_mut("reason")
            && let Some(plain) = plainly(reason, &self.root)
        {
            *reason = plain;
        }
        Ok(())
    }
}

/// `status` of a TokenReview.
fn identified(mapping: &Mapping, host_tokens: Option<&HostTokens>, status: &mut Value) -> serde_json::Result<()> {
    if status["authenticated"] != true {
        return Ok(());
    }
    let user = TokenUser::deserialize(&status["user"])?;
    match shown(mapping, host_tokens, user) {
        Some(user) => status["user"] = serde_json::to_value(user)?,
        None => *status = json!({"user": {}, "error": INVALID_TOKEN}),
    }
    Ok(())
}

/// Replaces a RoleBinding in the root namespace, or a mirror of it, by its ClusterRoleBinding in the virtual cluster.
/// `None` if the binding is a RoleBinding there, too.
fn plainly(reason: &str, root: &HostNamespace) -> Option<String> {
    let (before, rest) = reason.split_once(BY_BINDING)?;
    let (binding, after) = rest.split_once('"')?;
    let (name, namespace) = binding.rsplit_once('/')?;
    let name = match name.strip_prefix(MIRROR_PREFIX) {
        Some(name) => name,
        None if namespace == root.as_str() => name,
        None => return None,
    };
    Some(format!("{before}allowed by ClusterRoleBinding \"{name}\"{after}"))
}
