//! What the agent's own loops ask of the host: the few calls of [`Api`] that they make, so that tests can put a host
//! in memory behind them.

use std::future::Future;

use serde_json::Value;

use crate::host::api::{Api, ApiError, Change, PatchKind, Reflector, Selection, Shape};

/// A host's API server. Clones are the same. Paths are absolute; every call is bounded in time and size.
pub trait HostApi: Clone + Send + Sync + 'static {
    /// What [`follow`](Self::follow) gives.
    type Following: Following;

    /// Reads one object.
    fn get(&self, path: &str) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Reads a whole list; `labels` is a label selector, empty for everything.
    fn list(&self, path: &str, labels: &str) -> impl Future<Output = Result<Vec<Value>, ApiError>> + Send;

    /// The same, but only the metadata of the objects.
    fn list_metadata(&self, path: &str, labels: &str) -> impl Future<Output = Result<Vec<Value>, ApiError>> + Send;

    /// Whether `is_one` accepts the metadata of any object in a list.
    fn any(
        &self,
        path: &str,
        labels: &str,
        is_one: impl Fn(&Value) -> bool + Send + Sync,
    ) -> impl Future<Output = Result<bool, ApiError>> + Send;

    /// Creates an object in the collection; returns it as stored.
    fn create(&self, path: &str, object: &Value) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Replaces an object, if its `resourceVersion` is still the present one.
    fn update(&self, path: &str, object: &Value) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Server-side apply; `path` says who is the manager of the fields, and whether to take them by force.
    fn apply(&self, path: &str, object: &Value) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Deletes an object; `options` is a `DeleteOptions`.
    fn delete(&self, path: &str, options: &Value) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Lists and watches a collection for ever.
    fn follow(&self, path: &str, labels: &str) -> Self::Following;
}

/// A list that stays true.
pub trait Following: Send + 'static {
    /// The next change; dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = Change> + Send;
}

// === impl HostApi for Api ===

impl HostApi for Api {
    type Following = Reflector;

    async fn get(&self, path: &str) -> Result<Value, ApiError> {
        Self::get(self, path).await
    }

    async fn list(&self, path: &str, labels: &str) -> Result<Vec<Value>, ApiError> {
        Ok(Self::list(self, path, &labelled(labels)).await?.items)
    }

    async fn list_metadata(&self, path: &str, labels: &str) -> Result<Vec<Value>, ApiError> {
        Ok(Self::list(self, path, &Selection { shape: Shape::Metadata, ..labelled(labels) }).await?.items)
    }

    async fn any(
        &self,
        path: &str,
        labels: &str,
        is_one: impl Fn(&Value) -> bool + Send + Sync,
    ) -> Result<bool, ApiError> {
        Self::any(self, path, &Selection { shape: Shape::Metadata, ..labelled(labels) }, is_one).await
    }

    async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        Self::create(self, path, object).await
    }

    async fn update(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        Self::update(self, path, object).await
    }

    async fn apply(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.patch(path, PatchKind::Apply, object).await
    }

    async fn delete(&self, path: &str, options: &Value) -> Result<Value, ApiError> {
        Self::delete(self, path, options).await
    }

    fn follow(&self, path: &str, labels: &str) -> Reflector {
        self.reflect(path, labelled(labels))
    }
}

impl Following for Reflector {
    async fn next(&mut self) -> Change {
        Self::next(self).await
    }
}

fn labelled(labels: &str) -> Selection {
    Selection { labels: labels.to_owned(), ..Selection::default() }
}
