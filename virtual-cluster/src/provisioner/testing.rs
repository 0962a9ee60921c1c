//! A host in memory: Namespaces and RoleBindings, with the relevant behaviour of the API server, the namespace
//! controller and RBAC's caches. Nothing happens in it by itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use kube_wire::Status;
use kube_wire::status::{Cause, Details, Reason};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::binding::is_deleted;
use super::canary::CANARY;
use super::paths;
use crate::namespaces;
use host_client::api::{ApiError, Change, Page, Position, Selection};
use host_client::api::{Following, HostApi, Object};

/// Reviews of the agent's own rights.
const OWN_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Clones share one host.
#[derive(Clone)]
pub(crate) struct FakeHost {
    state: Arc<Mutex<State>>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
pub(crate) struct State {
    /// All objects, by path.
    pub(crate) objects: BTreeMap<String, Value>,
    version: u64,
    pub(super) followers: Vec<Follower>,
    /// The number of reviews that are denied before one uses the current objects.
    pub(crate) reviews_behind: u32,
    pub(crate) reviews: u32,
    /// The number of calls that get a 503.
    pub(crate) failing: u32,
    /// The number of dry runs that no policy checks.
    pub(crate) policies_behind: u32,
    /// Whether a webhook refuses dry runs.
    pub(crate) dry_runs_refused: bool,
    /// Events in this namespace are not delivered.
    pub(crate) deaf: Option<String>,
    /// Whether a ResourceQuota for RoleBindings is used up.
    pub(crate) quota_is_full: bool,
    /// Whether the agent may not create FlowSchemas and PriorityLevelConfigurations.
    pub(crate) flows_are_forbidden: bool,
    /// The requests, as method and path. Watches are not among them.
    pub(crate) requests: Vec<String>,
    /// A field of a status that the definition of the kind does not declare.
    pub(crate) undeclared: Option<&'static str>,
    /// The number of updates before which another client changes the object.
    pub(crate) meddling: u32,
}

/// A watch.
pub(super) struct Follower {
    pub(super) path: String,
    labels: String,
    is_in: fn(&str) -> bool,
    sender: mpsc::UnboundedSender<Change>,
}

pub(crate) struct FakeFollowing(mpsc::UnboundedReceiver<Change>);

// === impl FakeHost ===

impl FakeHost {
    pub(crate) fn new() -> Self {
        Self { state: Arc::default(), changes: watch::Sender::new(()) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Waits until the state of the host satisfies a condition. With paused time, the test's deadline fails otherwise.
    pub(crate) async fn until(&self, is_so: impl Fn(&State) -> bool) {
        let mut changes = self.changes.subscribe();
        while !is_so(&self.lock()) {
            changes.changed().await.unwrap();
        }
    }

    pub(crate) fn put(&self, path: &str, object: Value) {
        self.lock().store(path, object);
        self.changes.send_replace(());
    }

    pub(crate) fn edit(&self, path: &str, edit: impl FnOnce(&mut Value)) {
        let mut object = self.lock().objects[path].clone();
        edit(&mut object);
        self.put(path, object);
    }

    pub(crate) fn remove(&self, path: &str) {
        self.lock().delete(path);
        self.changes.send_replace(());
    }

    /// One pass of the namespace controller over a namespace that is being deleted. `others` are the other resources
    /// that are left in it, as its condition names them.
    pub(crate) fn empty(&self, namespace: &str, others: &[&str]) {
        let mut state = self.lock();
        let path = format!("{}/{namespace}", namespaces::PATH);
        let bindings = paths_under(&state, namespace);
        for binding in &bindings {
            state.delete(binding);
        }
        let left = paths_under(&state, namespace).len();
        let mut remaining: Vec<_> = others.iter().map(|other| format!("{other} has 1 resource instances")).collect();
        if left > 0 {
            remaining.push(format!("rolebindings.rbac.authorization.k8s.io has {left} resource instances"));
        }
        if remaining.is_empty() {
            let object = state.objects.remove(&path).unwrap();
            state.tell(&path, &Change::Deleted(object));
        } else {
            let mut object = state.objects[&path].clone();
            object["status"]["conditions"] = json!([{
                "type": "NamespaceContentRemaining", "status": "True",
                "message": format!("Some resources are remaining: {}", remaining.join(", ")),
            }]);
            state.store(&path, object);
        }
        drop(state);
        self.changes.send_replace(());
    }

    fn note(&self, method: &str, path: &str) {
        self.lock().requests.push(format!("{method} {path}"));
    }

    fn call<T>(&self, call: impl FnOnce(&mut State) -> Result<T, ApiError>) -> Result<T, ApiError> {
        let mut state = self.lock();
        let result = if state.failing > 0 {
            state.failing -= 1;
            Err(refused(503, Reason::ServiceUnavailable))
        } else {
            call(&mut state)
        };
        drop(state);
        self.changes.send_replace(());
        result
    }
}

impl HostApi for FakeHost {
    type Following<T: Object> = FakeFollowing;

    async fn get(&self, path: &str) -> Result<Value, ApiError> {
        self.note("GET", path);
        self.call(|state| state.objects.get(path).cloned().ok_or_else(not_found))
    }

    async fn read<T: Object>(&self, path: &str) -> Result<T, ApiError> {
        Ok(parsed(&self.get(path).await?))
    }

    /// Pages have two objects, so that lists have several pages.
    async fn page<T: Object>(&self, path: &str, selection: &Selection, from: &Position) -> Result<Page<T>, ApiError> {
        self.note("LIST", path);
        self.call(|state| {
            let after = from.token();
            let listed = state.objects.iter().filter(|(at, object)| {
                is_in(at, path)
                    && has_label(object, &selection.labels)
                    && has_field(object, &selection.fields)
                    && after.is_none_or(|after| at.as_str() > after)
            });
            let mut listed = listed.peekable();
            let page: Vec<_> = listed.by_ref().take(2).collect();
            let next = listed.peek().and(page.last()).map(|(at, _)| Position::at(at));
            let items = page.into_iter().map(|(_, object)| parsed(object)).collect();
            Ok(Page { items, resource_version: state.version.to_string(), next })
        })
    }

    async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.note("POST", path);
        self.call(|state| {
            if path == paths::REVIEWS {
                return Ok(state.review(object));
            }
            if path == OWN_REVIEWS {
                return Ok(state.review_own(object));
            }
            if path.ends_with("?dryRun=All") {
                return state.admit(object);
            }
            let path = path.split_once('?').map_or(path, |(path, _)| path);
            let at = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
            state.check_namespace(path)?;
            // Admission comes first (`Create` in apiserver's `registry/generic/registry/store.go`).
            if state.quota_is_full && path.ends_with("/rolebindings") {
                return Err(refused(403, Reason::Forbidden));
            }
            if state.flows_are_forbidden && path.contains("flowcontrol") {
                return Err(refused(403, Reason::Forbidden));
            }
            if state.objects.contains_key(&at) {
                return Err(refused(409, Reason::AlreadyExists));
            }
            let mut object = object.clone();
            if path == namespaces::PATH {
                object["spec"]["finalizers"] = json!(["kubernetes"]);
                object["status"]["phase"] = json!("Active");
            }
            state.store(&at, object);
            Ok(state.objects[&at].clone())
        })
    }

    async fn update(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        self.note("PUT", path);
        self.call(|state| {
            if state.meddling > 0 {
                state.meddling -= 1;
                let mut meddled = state.objects.get(path).cloned().ok_or_else(not_found)?;
                meddled["metadata"]["annotations"]["meddling"] = json!(state.meddling);
                state.store(path, meddled);
            }
            if path.ends_with(CANARY) {
                // Without a resource version, RBAC's registries overwrite an object, or create it (`AllowCreateOnUpdate`).
                state.store(path, object.clone());
                return Ok(object.clone());
            }
            let stored = state.objects.get(path).ok_or_else(not_found)?;
            if stored["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                return Err(refused(409, Reason::Conflict));
            }
            assert_eq!(stored["roleRef"], object["roleRef"], "what a binding refers to cannot be changed");
            // The finalizers of a Namespace's specification keep it.
            let is_over = is_deleted(object) && !has_finalizers(object) && !is_in(path, namespaces::PATH);
            state.store(path, object.clone());
            if is_over {
                state.take(path);
            }
            Ok(object.clone())
        })
    }

    async fn create_text(&self, path: &str, object: String) -> Result<(), ApiError> {
        self.create(path, &serde_json::from_str(&object).unwrap()).await.map(drop)
    }

    async fn patch_text(&self, path: &str, patch: String) -> Result<(), ApiError> {
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let stored = self.get(path).await?;
        self.update(path, &patched(stored, serde_json::from_str(&patch).unwrap())).await.map(drop)
    }

    async fn apply(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        let (path, _query) = path.split_once('?').expect("a field manager");
        self.note("PATCH", path);
        self.call(|state| {
            if let Some(field) = state.undeclared.filter(|field| !object["status"][*field].is_null()) {
                // What Kubernetes 1.36 answers.
                let why = format!("failed to create typed patch object: .status.{field}: field not declared in schema");
                return Err(ApiError::Status(Box::new(Status::failure(500, Reason::InternalError, why))));
            }
            // The API server's fields stay, so that a repeated apply changes nothing.
            let mut stored = state.objects.get(path).cloned().unwrap_or_default();
            let metadata = stored["metadata"].take();
            let mut applied = object.clone();
            for key in ["uid", "resourceVersion"].iter().filter(|key| !metadata[**key].is_null()) {
                applied["metadata"][key] = metadata[key].clone();
            }
            stored["metadata"] = metadata;
            if stored != applied {
                state.store(path, applied);
            }
            Ok(state.objects[path].clone())
        })
    }

    async fn delete<T: Object>(&self, path: &str, _options: &Value) -> Result<T, ApiError> {
        self.note("DELETE", path);
        self.call(|state| state.delete(path).map(|object| parsed(&object)).ok_or_else(not_found))
    }

    fn follow<T: Object>(&self, path: &str, labels: &str) -> FakeFollowing {
        self.follow_in::<T>(path, labels, |_| true)
    }

    fn follow_in<T: Object>(&self, path: &str, labels: &str, is_in: fn(&str) -> bool) -> FakeFollowing {
        let (sender, receiver) = mpsc::unbounded_channel();
        let follower = Follower { path: path.to_owned(), labels: labels.to_owned(), is_in, sender };
        let mut state = self.lock();
        for (_, object) in state.objects.iter().filter(|(at, _)| follower.is_about(at)) {
            if has_label(object, labels) {
                follower.sender.send(Change::Applied(object.clone())).unwrap();
            }
        }
        follower.sender.send(Change::Synced).unwrap();
        state.followers.push(follower);
        FakeFollowing(receiver)
    }
}

impl<T: Object> Following<T> for FakeFollowing {
    async fn next(&mut self) -> Change<T> {
        match self.0.recv().await {
            Some(Change::Applied(object)) => Change::Applied(parsed(&object)),
            Some(Change::Deleted(object)) => Change::Deleted(parsed(&object)),
            Some(Change::Synced) => Change::Synced,
            None => std::future::pending().await,
        }
    }
}

// === impl Follower ===

impl Follower {
    fn is_about(&self, path: &str) -> bool {
        let namespace = path.split_once("/namespaces/").and_then(|(_, rest)| rest.split('/').next());
        is_in(path, &self.path) && (self.is_in)(namespace.unwrap_or_default())
    }
}

// === impl State ===

impl State {
    fn store(&mut self, path: &str, mut object: Value) {
        self.version += 1;
        let before = self.objects.get(path).cloned();
        let uid = before.as_ref().map_or(json!(format!("uid-{}", self.version)), |it| it["metadata"]["uid"].clone());
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        for Follower { labels, sender, .. } in self.followers_of(path) {
            if has_label(&object, labels) {
                let _ = sender.send(Change::Applied(object.clone()));
            } else if before.as_ref().is_some_and(|before| has_label(before, labels)) {
                let _ = sender.send(Change::Deleted(object.clone()));
            }
        }
    }

    fn delete(&mut self, path: &str) -> Option<Value> {
        let mut object = self.objects.get(path)?.clone();
        let is_namespace = is_in(path, namespaces::PATH);
        if !is_namespace && !has_finalizers(&object) {
            return self.take(path);
        }
        if !is_deleted(&object) {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            if is_namespace {
                object["status"]["phase"] = json!("Terminating");
            }
            self.store(path, object.clone());
        }
        Some(object)
    }

    fn take(&mut self, path: &str) -> Option<Value> {
        let mut object = self.objects.remove(path)?;
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.tell(path, &Change::Deleted(object.clone()));
        Some(object)
    }

    fn followers_of(&self, path: &str) -> impl Iterator<Item = &Follower> {
        let is_deaf = self.deaf.as_ref().is_some_and(|namespace| path.contains(&format!("/namespaces/{namespace}/")));
        self.followers.iter().filter(move |follower| !is_deaf && follower.is_about(path))
    }

    fn tell(&self, path: &str, change: &Change) {
        let (Change::Applied(object) | Change::Deleted(object)) = change else { return };
        for follower in self.followers_of(path).filter(|follower| has_label(object, &follower.labels)) {
            let _ = follower.sender.send(change.clone());
        }
    }

    /// The check of the admission plugin NamespaceLifecycle.
    fn check_namespace(&self, collection: &str) -> Result<(), ApiError> {
        let Some((_, rest)) = collection.split_once("/namespaces/") else { return Ok(()) };
        let namespace = rest.split('/').next().unwrap();
        match self.objects.get(&format!("{}/{namespace}", namespaces::PATH)) {
            None => Err(not_found()),
            Some(namespace) if is_deleted(namespace) => {
                let cause = Cause {
                    cause_type: "NamespaceTerminating".into(),
                    message: String::new(),
                    field: "metadata.namespace".into(),
                };
                let details = Details { causes: vec![cause], ..Details::default() };
                let status =
                    Status { code: 403, reason: Reason::Forbidden, details: Some(details), ..Status::default() };
                Err(ApiError::Status(Box::new(status)))
            }
            Some(_) => Ok(()),
        }
    }

    /// The check of the admission policies, once they are in force.
    fn admit(&mut self, namespace: &Value) -> Result<Value, ApiError> {
        if self.dry_runs_refused {
            return Err(refused(400, Reason::BadRequest));
        }
        let is_behind = self.policies_behind > 0;
        self.policies_behind = self.policies_behind.saturating_sub(1);
        let labels = &namespace["metadata"]["labels"];
        assert!(!labels["atoll.dev/virtual-cluster"].is_null() && !labels["atoll.dev/root"].is_null());
        let is_bound = self.objects.keys().any(|path| path.ends_with("policybindings/probe.atoll.dev"));
        let policy = self.objects.iter().find(|(path, _)| path.ends_with("policies/probe.atoll.dev"));
        let Some((_, policy)) = policy.filter(|_| is_bound && !is_behind) else { return Ok(namespace.clone()) };
        let message = policy["spec"]["validations"][0]["message"].as_str().unwrap();
        let message = format!("ValidatingAdmissionPolicy 'probe.atoll.dev' denied request: {message}");
        let status = Status { code: 403, reason: Reason::Forbidden, message, ..Status::default() };
        Err(ApiError::Status(Box::new(status)))
    }

    fn review(&mut self, review: &Value) -> Value {
        self.reviews += 1;
        let attributes = &review["spec"]["resourceAttributes"];
        // A canary is granted to a user, and the rights of administrators to a group.
        if review["spec"]["groups"].is_null() {
            let is_granted = |role: &Value| role["rules"][0]["resourceNames"][0] == attributes["name"];
            let is_behind = self.reviews_behind > 0;
            self.reviews_behind = self.reviews_behind.saturating_sub(1);
            return json!({"status": {"allowed": self.objects.values().any(is_granted) && !is_behind}});
        }
        let namespace = attributes["namespace"].as_str().unwrap();
        let groups = review["spec"]["groups"].as_array().unwrap();
        let is_bound = self.objects.iter().any(|(path, object)| {
            path.contains(&format!("/namespaces/{namespace}/rolebindings/"))
                && object["roleRef"]["name"] == "cluster-admin"
                && groups.iter().any(|group| object["subjects"][0]["name"] == *group)
        });
        let is_behind = self.reviews_behind > 0;
        self.reviews_behind = self.reviews_behind.saturating_sub(1);
        json!({"status": {"allowed": is_bound && !is_behind}})
    }
}

impl State {
    /// Reviews a right of the agent from aggregated roles.
    fn review_own(&mut self, review: &Value) -> Value {
        self.reviews += 1;
        let attributes = &review["spec"]["resourceAttributes"];
        let is_given = self.objects.iter().any(|(path, object)| {
            path.contains("/clusterroles/")
                && object["metadata"]["labels"]["atoll.dev/agent-custom-resources"] == "true"
                && object["rules"][0]["resources"].as_array().unwrap().contains(&attributes["resource"])
        });
        let is_behind = self.reviews_behind > 0;
        self.reviews_behind = self.reviews_behind.saturating_sub(1);
        json!({"status": {"allowed": is_given && !is_behind}})
    }
}

/// Parses an object like a response of the host.
fn parsed<T: Object>(object: &Value) -> T {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// A strategic merge patch, of labels, finalizers and subjects.
fn patched(mut object: Value, patch: Value) -> Value {
    let Value::Object(mut fields) = patch else { panic!("{patch}") };
    let mut metadata = fields.remove("metadata").unwrap();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let stored = &mut object["metadata"];
    let mut finalizers = list(&stored["finalizers"]);
    finalizers.retain(|finalizer| !list(&metadata["$deleteFromPrimitiveList/finalizers"]).contains(finalizer));
    for finalizer in list(&metadata["finalizers"]) {
        if !finalizers.contains(&finalizer) {
            finalizers.push(finalizer);
        }
    }
    stored["finalizers"] = finalizers.into();
    for (key, value) in metadata["labels"].take().as_object().into_iter().flatten() {
        stored["labels"][key] = value.clone();
    }
    if let Some(labels) = stored["labels"].as_object_mut() {
        labels.retain(|_, value| !value.is_null());
    }
    // Without a version, a patch cannot conflict.
    if let Some(version) = metadata.get_mut("resourceVersion") {
        stored["resourceVersion"] = version.take();
    }
    for (key, value) in fields {
        object[key] = value;
    }
    object
}

fn paths_under(state: &State, namespace: &str) -> Vec<String> {
    let prefix = format!("/namespaces/{namespace}/");
    state.objects.keys().filter(|path| path.contains(&prefix)).cloned().collect()
}

fn is_in(path: &str, collection: &str) -> bool {
    if [paths::ALL_BINDINGS, paths::ALL_ROLES].contains(&collection) {
        let (_, resource) = collection.rsplit_once('/').expect("a path");
        return path.contains(&format!("/{resource}/"));
    }
    path.strip_prefix(collection).and_then(|rest| rest.strip_prefix('/')).is_some_and(|name| !name.contains('/'))
}

/// `KEY`, `!KEY`, `KEY=VALUE` or `KEY in (VALUE,VALUE)`.
fn has_label(object: &Value, label: &str) -> bool {
    let labels = &object["metadata"]["labels"];
    if let Some((key, values)) = label.split_once(" in ") {
        return values.trim_matches(['(', ')']).split(',').any(|value| labels[key] == value);
    }
    if let Some(key) = label.strip_prefix('!') {
        return labels[key].is_null();
    }
    label.is_empty()
        || match label.split_once('=') {
            Some((key, value)) => labels[key] == value,
            None => !labels[label].is_null(),
        }
}

/// Nothing, or `metadata.name=NAME`.
fn has_field(object: &Value, field: &str) -> bool {
    field.split_once('=').is_none_or(|(_, name)| object["metadata"]["name"] == name)
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

fn not_found() -> ApiError {
    refused(404, Reason::NotFound)
}

fn refused(code: u16, reason: Reason) -> ApiError {
    ApiError::Status(Box::new(Status { code, reason, ..Status::default() }))
}
