//! The options of a deletion (`DeleteOptions`).

use kube_wire::Status;
use kube_wire::gvr::GroupResource;
use serde_json::Value;

use crate::kinds::Kind;
use crate::object;

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletion {
    pub(super) dry_run: bool,
    propagation: Option<Propagation>,
    grace: Option<i64>,
    uid: Option<String>,
    version: Option<String>,
}

/// What happens to dependents. `None` deletes them in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    /// They are kept.
    Orphan,
    /// They are deleted first.
    Foreground,
}

// === impl Deletion ===

impl Deletion {
    /// Deletes dependents first.
    pub(crate) fn foreground() -> Self {
        Self { propagation: Some(Propagation::Foreground), ..Self::default() }
    }

    pub(crate) fn parse(options: &Value) -> Result<Self, Status> {
        let propagation = match (options["propagationPolicy"].as_str(), options["orphanDependents"].as_bool()) {
            (Some("Orphan"), _) | (_, Some(true)) => Some(Propagation::Orphan),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (None | Some("" | "Background"), _) => None,
            (Some(other), _) => {
                return Err(Status::bad_request(format!(
                    "propagationPolicy {other:?} is none of Orphan, Background, Foreground"
                )));
            }
        };
        let text = |field: &str| options["preconditions"][field].as_str().map(str::to_owned);
        Ok(Self {
            dry_run: !object::items(&options["dryRun"]).is_empty(),
            propagation,
            grace: options["gracePeriodSeconds"].as_i64(),
            uid: text("uid"),
            version: text("resourceVersion"),
        })
    }

    pub(super) fn check(&self, kind: &Kind, found: &Value) -> Result<(), Status> {
        let preconditions = [
            ("uid", "UID", &self.uid, "deleted and then recreated"),
            ("resourceVersion", "ResourceVersion", &self.version, "modified"),
        ];
        for (field, name, required, cause) in preconditions {
            let live = found["metadata"][field].as_str().unwrap_or_default();
            if let Some(required) = required.as_deref().filter(|required| *required != live) {
                let why = format!(
                    "the {name} in the precondition ({required}) does not match the {name} in record ({live}). The object \
                     might have been {cause}"
                );
                // The text has the kind instead of the resource (`BeforeDelete` in apiserver's `registry/rest/delete.go`).
                let kind = GroupResource { resource: kind.kind, ..kind.group_resource() };
                return Err(Status::conflict(kind, object::name(found), &why));
            }
        }
        Ok(())
    }

    pub(super) fn finalizer(&self) -> Option<&'static str> {
        self.propagation.map(|propagation| match propagation {
            Propagation::Orphan => "orphan",
            Propagation::Foreground => "foregroundDeletion",
        })
    }

    /// The grace period in seconds. It is 0 for everything except pods that run on a node.
    pub(super) fn grace_of(&self, kind: &Kind, found: &Value) -> i64 {
        let is_running = kind.is_pod()
            && found["spec"]["nodeName"].is_string()
            && !matches!(found["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if !is_running {
            return 0;
        }
        let requested =
            self.grace.or_else(|| found["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30).max(0);
        // A second deletion can only shorten the grace period.
        let previous = found["metadata"]["deletionGracePeriodSeconds"].as_i64();
        previous.map_or(requested, |previous| previous.min(requested))
    }
}
