//! A host in memory: Namespaces and RoleBindings with what of the API server, the namespace controller and RBAC's
//! caches matters to the code here. Nothing happens in it by itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use kube_wire::Status;
use kube_wire::status::{Cause, Details, Reason};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::binding::is_deleted;
use super::paths;
use crate::clusters::host_api::{Following, HostApi, Object};
use crate::host::api::{ApiError, Change, Page, Position, Selection};
use crate::namespaces;

/// Where the agent asks about itself.
const OWN_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Clones are the same host.
#[derive(Clone)]
pub(crate) struct FakeHost {
    state: Arc<Mutex<State>>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
pub(crate) struct State {
    /// By path.
    pub(crate) objects: BTreeMap<String, Value>,
    version: u64,
    followers: Vec<(String, String, mpsc::UnboundedSender<Change>)>,
    /// So many reviews will say no before one says what is written.
    pub(crate) reviews_behind: u32,
    pub(crate) reviews: u32,
    /// So many calls will get a 503.
    pub(crate) failing: u32,
    /// So many dry runs are looked at by no policy.
    pub(crate) policies_behind: u32,
    /// A webhook accepts no dry run.
    pub(crate) dry_runs_refused: bool,
    /// Nobody is told of what happens in this namespace.
    pub(crate) deaf: Option<String>,
    /// Before an update is looked at, somebody else changes the object, so many times.
    pub(crate) meddling: u32,
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

    /// Waits until the host is like this. With paused time, a host that never will be fails the test by its deadline.
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

    /// One pass of the namespace controller over a namespace that is being deleted. `others` is what else is left in
    /// it, in the words of its condition.
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
        self.call(|state| state.objects.get(path).cloned().ok_or_else(not_found))
    }

    async fn read<T: Object>(&self, path: &str) -> Result<T, ApiError> {
        Ok(parsed(&self.get(path).await?))
    }

    /// Pages of two, so that lists have several.
    async fn page<T: Object>(&self, path: &str, selection: &Selection, from: &Position) -> Result<Page<T>, ApiError> {
        self.call(|state| {
            let after = from.token();
            let listed = state.objects.iter().filter(|(at, object)| {
                is_in(at, path) && has_label(object, &selection.labels) && after.is_none_or(|after| at.as_str() > after)
            });
            let mut listed = listed.peekable();
            let page: Vec<_> = listed.by_ref().take(2).collect();
            let next = listed.peek().and(page.last()).map(|(at, _)| Position::at(at));
            let items = page.into_iter().map(|(_, object)| parsed(object)).collect();
            Ok(Page { items, resource_version: state.version.to_string(), next })
        })
    }

    async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
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
            let at = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
            state.check_namespace(path)?;
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
        self.call(|state| {
            if state.meddling > 0 {
                state.meddling -= 1;
                let mut meddled = state.objects.get(path).cloned().ok_or_else(not_found)?;
                meddled["metadata"]["annotations"]["meddling"] = json!(state.meddling);
                state.store(path, meddled);
            }
            let stored = state.objects.get(path).ok_or_else(not_found)?;
            if stored["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                return Err(refused(409, Reason::Conflict));
            }
            assert_eq!(stored["roleRef"], object["roleRef"], "what a binding refers to cannot be changed");
            // A Namespace ends by its specification's finalizers.
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
        let stored = self.get(path).await?;
        self.update(path, &patched(stored, serde_json::from_str(&patch).unwrap())).await.map(drop)
    }

    async fn apply(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        let (path, _query) = path.split_once('?').expect("a field manager");
        self.call(|state| {
            // Of what is stored only what nobody applies: applying the same again changes nothing.
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
        self.call(|state| state.delete(path).map(|object| parsed(&object)).ok_or_else(not_found))
    }

    fn follow<T: Object>(&self, path: &str, labels: &str) -> FakeFollowing {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = self.lock();
        for (at, object) in &state.objects {
            if is_in(at, path) && has_label(object, labels) {
                sender.send(Change::Applied(object.clone())).unwrap();
            }
        }
        sender.send(Change::Synced).unwrap();
        state.followers.push((path.to_owned(), labels.to_owned(), sender));
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

// === impl State ===

impl State {
    fn store(&mut self, path: &str, mut object: Value) {
        self.version += 1;
        let before = self.objects.get(path).cloned();
        let uid = before.as_ref().map_or(json!(format!("uid-{}", self.version)), |it| it["metadata"]["uid"].clone());
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        for (collection, labels, sender) in self.followers.iter().filter(|_| self.is_told(path)) {
            if is_in(path, collection) {
                if has_label(&object, labels) {
                    let _ = sender.send(Change::Applied(object.clone()));
                } else if before.as_ref().is_some_and(|before| has_label(before, labels)) {
                    let _ = sender.send(Change::Deleted(object.clone()));
                }
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

    fn is_told(&self, path: &str) -> bool {
        !self.deaf.as_ref().is_some_and(|namespace| path.contains(&format!("/namespaces/{namespace}/")))
    }

    fn tell(&self, path: &str, change: &Change) {
        let (Change::Applied(object) | Change::Deleted(object)) = change else { return };
        for (collection, labels, sender) in self.followers.iter().filter(|_| self.is_told(path)) {
            if is_in(path, collection) && has_label(object, labels) {
                let _ = sender.send(change.clone());
            }
        }
    }

    /// As the admission plugin NamespaceLifecycle does.
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

    /// As the policies do, once they are in force.
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
    /// What the agent may write that is made of these by aggregation.
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

/// As the host's response is read.
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
    stored["resourceVersion"] = metadata["resourceVersion"].take();
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
    if collection == paths::ALL_BINDINGS {
        return path.contains("/rolebindings/");
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

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

fn not_found() -> ApiError {
    refused(404, Reason::NotFound)
}

fn refused(code: u16, reason: Reason) -> ApiError {
    ApiError::Status(Box::new(Status { code, reason, ..Status::default() }))
}
