//! Deleting: at once, or when the last finalizer has gone, or when a node says so.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use kube_wire::gvr::GroupResource;
use kube_wire::query::DeleteOptions;
use kube_wire::{ResourceRequest, Status};
use serde_json::{Value, json};

use super::read::find;
use super::scope;
use super::selection::Selection;
use super::shape::ListMeta;
use crate::answer::{self, Body};
use crate::kinds::Kind;
use crate::object;
use crate::protobuf;
use crate::serve::{Call, Sent, parse_json};
use crate::store::State;

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletion {
    dry_run: bool,
    propagation: Option<Propagation>,
    grace: Option<i64>,
    uid: Option<String>,
    version: Option<String>,
}

/// What happens to what the object owns. Without one, dependents go after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    /// They stay.
    Orphan,
    /// They go first.
    Foreground,
}

/// What became of the object.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It is gone; its last state.
    Gone(Arc<Value>),
    /// It will go.
    Going(Arc<Value>),
}

// === impl Call ===

impl Call<'_> {
    pub(super) async fn delete(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        let deletion = self.deletion(sent).await?;
        let deleted = self.api.store.write(|state| {
            let found = Arc::clone(find(state, kind, request)?);
            delete(state, kind, &found, &deletion)
        })?;
        match deleted {
            Deleted::Going(object) => self.show(StatusCode::OK, kind, &object),
            Deleted::Gone(object) if kind.is_pod() => self.show(StatusCode::OK, kind, &object),
            Deleted::Gone(object) => Ok(answer::json(StatusCode::OK, &success(kind, &object))),
        }
    }

    pub(super) async fn delete_collection(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        let deletion = self.deletion(sent).await?;
        let selection = Selection::parse(kind, &self.list_options()?)?;
        let (revision, items) = self.api.store.write(|state| {
            let namespace = scope(kind, request);
            let found: Vec<_> =
                state.list(kind, namespace).filter(|object| selection.selects(object)).cloned().collect();
            for object in &found {
                delete(state, kind, object, &deletion)?;
            }
            Ok::<_, Status>((state.revision(), found))
        })?;
        self.show_list(kind, &ListMeta { resource_version: revision, ..ListMeta::default() }, &items)
    }

    /// The body, if there is one, says it all; else the query does.
    async fn deletion(&self, sent: Sent) -> Result<Deletion, Status> {
        let query = DeleteOptions::parse(self.info.query()).map_err(|error| Status::bad_request(error.to_string()))?;
        let content_type = self.header(header::CONTENT_TYPE).unwrap_or_default();
        let bytes = sent.bytes().await?;
        if bytes.is_empty() {
            let options = json!({
                "dryRun": query.dry_run.then_some(["All"]),
                "propagationPolicy": query.propagation_policy,
                "gracePeriodSeconds": query.grace_period_seconds,
                "orphanDependents": query.orphan_dependents,
            });
            return Deletion::parse(&options);
        }
        let is_protobuf = content_type.contains("protobuf");
        let options = if is_protobuf { protobuf::object(&bytes)? } else { parse_json(&bytes)? };
        Deletion::parse(&options)
    }
}

/// Deletes an object that is in the store.
pub(crate) fn delete(
    state: &mut State,
    kind: &'static Kind,
    found: &Arc<Value>,
    deletion: &Deletion,
) -> Result<Deleted, Status> {
    let (namespace, name) = (object::namespace(found), object::name(found));
    deletion.check(kind, found)?;
    if kind.is_namespace() && matches!(name, "default" | "kube-system" | "kube-public") {
        return Err(Status::forbidden_because(kind.group_resource(), name, "this namespace may not be deleted"));
    }
    let grace = deletion.grace_of(kind, found);
    let mut going = Value::clone(found);
    if let Some(finalizer) = deletion.finalizer() {
        let metadata = object::metadata(&mut going);
        let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
        if let Some(finalizers) = finalizers.as_array_mut()
            && !finalizers.iter().any(|one| one == finalizer)
        {
            finalizers.push(finalizer.into());
        }
    }
    let is_kept = object::has_finalizers(&going)
        || kind.is_namespace() && !object::items(&going["spec"]["finalizers"]).is_empty()
        || grace > 0;
    if !is_kept {
        if deletion.dry_run {
            return Ok(Deleted::Gone(Arc::clone(found)));
        }
        let last = state.remove(kind, namespace, name).unwrap_or_else(|| Arc::clone(found));
        return Ok(Deleted::Gone(last));
    }
    let metadata = object::metadata(&mut going);
    if metadata.get("deletionTimestamp").is_none_or(Value::is_null) {
        metadata.insert("deletionTimestamp".to_owned(), object::now().into());
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
    if kind.is_namespace() {
        object::map(&mut going, "status").insert("phase".to_owned(), "Terminating".into());
        object::metadata(&mut going).remove("deletionGracePeriodSeconds");
    }
    if going == **found || deletion.dry_run {
        return Ok(Deleted::Going(Arc::new(going)));
    }
    Ok(Deleted::Going(state.put(kind, going)))
}

/// The `Status` that says it is gone.
fn success(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({"name": object::name(object), "kind": kind.resource, "uid": object::uid(object)});
    if !kind.group.is_empty() {
        details["group"] = kind.group.into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

// === impl Deletion ===

impl Deletion {
    /// Dependents go first.
    pub(crate) fn foreground() -> Self {
        Self { propagation: Some(Propagation::Foreground), ..Self::default() }
    }

    fn parse(options: &Value) -> Result<Self, Status> {
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

    fn check(&self, kind: &Kind, found: &Value) -> Result<(), Status> {
        for (field, what, wanted) in [("uid", "UID", &self.uid), ("resourceVersion", "ResourceVersion", &self.version)]
        {
            let live = found["metadata"][field].as_str().unwrap_or_default();
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != live) {
                let why = format!(
                    "the {what} in the precondition ({wanted}) does not match the {what} in record ({live}). The object \
                     might have been deleted and then recreated"
                );
                // The generic store names the kind where others name the resource.
                let kind = GroupResource { resource: kind.kind, ..kind.group_resource() };
                return Err(Status::conflict(kind, object::name(found), &why));
            }
        }
        Ok(())
    }

    fn finalizer(&self) -> Option<&'static str> {
        self.propagation.map(|propagation| match propagation {
            Propagation::Orphan => "orphan",
            Propagation::Foreground => "foregroundDeletion",
        })
    }

    /// Seconds that a node gets to end a pod; everything else, and a pod that no node runs, goes at once.
    fn grace_of(&self, kind: &Kind, found: &Value) -> i64 {
        let is_running = kind.is_pod()
            && found["spec"]["nodeName"].is_string()
            && !matches!(found["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if !is_running {
            return 0;
        }
        let asked = self.grace.or_else(|| found["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30).max(0);
        // A second deletion may only shorten what the first one gave.
        let given = found["metadata"]["deletionGracePeriodSeconds"].as_i64();
        given.map_or(asked, |given| given.min(asked))
    }
}
