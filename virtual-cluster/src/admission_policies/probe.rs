//! Verifies that the host enforces the policies.
//!
//! A written policy is not in force at once: an API server loads policies about once a second (`refreshInterval` of the
//! policy source in apiserver/pkg/admission/plugin/policy/generic), and an API server with
//! `--disable-admission-plugins` never does. So the last written policy denies one request to everybody: to create a
//! Namespace that is both a member and a root namespace. The agent sends this request as a dry run until it is denied.
//! An API server loads policies in the order in which they were written, so all are in force then. (In this API server.
//! Another one of the same host may lag by a second.)
//!
//! The denial contains a revision: a digest that identifies the other policies as written. An API server that still has
//! older policies responds with another revision.

use std::fmt::Write as _;
use std::time::Duration;

use ops::backoff::Backoff;
use rewrite::name::CLUSTER_LABEL;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::policy::{Kind, Object, cluster_rule, validation};
use crate::namespaces;
use crate::provisioner::ROOT_LABEL;
use host_client::api::ApiError;
use host_client::api::HostApi;

/// The policy that refuses.
pub(super) const NAME: &str = "probe.atoll.dev";
/// The Namespace that is never created.
const NAMESPACE: &str = "atoll-probe";

/// How long to try. An API server loads new policies after at most two passes of a second each.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The pauses between two tries.
const PROBE_BACKOFF: Backoff = Backoff::new(Duration::from_millis(16), Duration::from_millis(256));
/// The number of bytes of the digest in a revision.
const REVISION_LENGTH: usize = 8;

/// The result of the probe.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The host enforces the policies.
    Enforced,
    /// The host does not enforce them.
    Idle,
    /// Something else refuses the dry run, for example a webhook that cannot be reached. So the state is unknown.
    Unknown(ApiError),
}

/// The host's response to the dry run.
enum DryRunResult {
    /// The policy has refused.
    Refused,
    /// No policy denied it, or an older policy did.
    Allowed,
    /// Something else denied it, so the host may not have evaluated the policy.
    Elsewhere(ApiError),
}

/// Identifies the policies as they were written.
#[derive(Clone, Debug, Default)]
pub(super) struct Revision(Sha256);

// === impl Revision ===

impl Revision {
    /// Adds a stored object. Its uid changes when it is created again, its generation when its specification changes.
    pub(super) fn add(&mut self, stored: &Value) {
        let metadata = &stored["metadata"];
        self.0.update(format!("{} {}\n", metadata["uid"], metadata["generation"]));
    }

    /// The text in the denial.
    pub(super) fn finish(self) -> String {
        let mut text = "revision ".to_owned();
        for byte in &self.0.finalize()[..REVISION_LENGTH] {
            write!(text, "{byte:02x}").expect("writing to a string");
        }
        text
    }
}

/// The policy that denies the request, and its binding. `revision` is that of all others.
pub(super) fn objects(version: &str, revision: &str) -> [Object; 2] {
    let both = [CLUSTER_LABEL, ROOT_LABEL].map(|key| json!({"key": key, "operator": "Exists"}));
    let message =
        format!("a root namespace is not a member of a virtual cluster (the admission policies are at {revision})");
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {"matchExpressions": both},
            "resourceRules": [cluster_rule(&["namespaces"], &["CREATE"])],
        },
        "validations": [validation("false", &message)],
    });
    Kind::Validating.objects(version, NAME, &spec)
}

/// Whether the host enforces the policies of this revision, which were just written. Waits for a short time.
pub(super) async fn probe(api: &impl HostApi, revision: &str) -> Verdict {
    let deadline = Instant::now() + PROBE_TIMEOUT;
    let mut backoff = PROBE_BACKOFF;
    loop {
        let answer = dry_run(api, revision).await;
        if let DryRunResult::Refused = answer {
            return Verdict::Enforced;
        }
        if Instant::now() >= deadline {
            return match answer {
                DryRunResult::Elsewhere(error) => Verdict::Unknown(error),
                DryRunResult::Refused | DryRunResult::Allowed => Verdict::Idle,
            };
        }
        sleep(backoff.fail()).await;
    }
}

/// Whether the host enforces policies of any revision.
///
/// # Errors
/// If something else refuses the dry run, so nothing is known.
pub(super) async fn is_enforced(api: &impl HostApi) -> Result<bool, ApiError> {
    match dry_run(api, "").await {
        DryRunResult::Refused => Ok(true),
        DryRunResult::Allowed => Ok(false),
        DryRunResult::Elsewhere(error) => Err(error),
    }
}

async fn dry_run(api: &impl HostApi, revision: &str) -> DryRunResult {
    let path = format!("{}?dryRun=All", namespaces::PATH);
    let Err(error) = api.create(&path, &denied_namespace()).await else { return DryRunResult::Allowed };
    // The API server names the policy that refuses.
    match error.status().map(|status| &status.message) {
        Some(message) if message.contains(NAME) && message.contains(revision) => DryRunResult::Refused,
        Some(message) if message.contains(NAME) => DryRunResult::Allowed,
        // The Namespace exists. Storage comes after admission, so no policy denied the request.
        _ if error.is_conflict() => DryRunResult::Allowed,
        _ => DryRunResult::Elsewhere(error),
    }
}

fn denied_namespace() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {CLUSTER_LABEL: "none", ROOT_LABEL: "none"}},
    })
}
