//! A trait with the calls of the agent's own loops, so that tests can run the loops on a host in memory.

use std::future::Future;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::calls::Api;
use super::error::ApiError;
use super::partial::Partial;
use super::patch_kind::PatchKind;
use super::position::Position;
use super::reflector::{Change, Reflector};
use super::response::Page;
use super::selection::Selection;

/// A host's API server. Clones share their state. Paths are absolute. Every call is limited in time and size.
pub trait HostApi: Clone + Send + Sync + 'static {
    /// The result of [`follow`](Self::follow).
    type Following<T: Object>: Following<T>;

    /// Reads one object.
    fn get(&self, path: &str) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Reads the part of one object that a `T` has.
    fn read<T: Object>(&self, path: &str) -> impl Future<Output = Result<T, ApiError>> + Send;

    /// Reads a page of a list.
    fn page<T: Object>(
        &self,
        path: &str,
        selection: &Selection,
        from: &Position,
    ) -> impl Future<Output = Result<Page<T>, ApiError>> + Send;

    /// Reads a list page by page.
    fn pages<'a>(&'a self, path: &'a str, selection: &'a Selection) -> Pages<'a, Self> {
        Pages { api: self, path, selection, next: Some(Position::default()) }
    }

    /// Whether `is_one` accepts the metadata of any object in a list, as a `T`.
    fn any<T: Object>(
        &self,
        path: &str,
        labels: &str,
        mut is_one: impl FnMut(T) -> bool + Send,
    ) -> impl Future<Output = Result<bool, ApiError>> + Send {
        async move {
            let selection = Selection::labelled(labels).metadata();
            let mut pages = self.pages(path, &selection);
            while let Some(page) = pages.next().await? {
                if page.into_iter().any(&mut is_one) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }

    /// Passes the metadata of each object in a list to `see`.
    fn each(
        &self,
        path: &str,
        labels: &str,
        mut see: impl FnMut(Partial) + Send,
    ) -> impl Future<Output = Result<(), ApiError>> + Send {
        async move {
            self.any(path, labels, |object: Partial| {
                see(object);
                false
            })
            .await
            .map(drop)
        }
    }

    /// Creates an object in the collection, and returns it as stored.
    fn create(&self, path: &str, object: &Value) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Replaces an object if its `resourceVersion` is still current.
    fn update(&self, path: &str, object: &Value) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Creates an object from JSON text.
    fn create_text(&self, path: &str, object: String) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Patches an object with a strategic merge patch in JSON text.
    fn patch_text(&self, path: &str, patch: String) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Applies an object (server-side apply). The query of `path` has the field manager, and whether to force
    /// conflicts.
    fn apply(&self, path: &str, object: &Value) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Deletes an object. `options` is a `DeleteOptions`. Returns the metadata in the response as a `T`: that of the
    /// object if it still exists, or that of a successful Status.
    fn delete<T: Object>(&self, path: &str, options: &Value) -> impl Future<Output = Result<T, ApiError>> + Send;

    /// Lists and watches a collection forever.
    fn follow<T: Object>(&self, path: &str, labels: &str) -> Self::Following<T>;

    /// The same, but ignores objects in namespaces for which `is_in` returns `false`. They need no memory.
    fn follow_in<T: Object>(&self, path: &str, labels: &str, is_in: fn(&str) -> bool) -> Self::Following<T>;
}

/// The part of an object that is read.
pub trait Object: DeserializeOwned + Send + 'static {}

/// A list that is read page by page, because clients determine how long it is.
pub struct Pages<'a, A> {
    api: &'a A,
    path: &'a str,
    selection: &'a Selection,
    next: Option<Position>,
}

/// A list that is kept up to date.
pub trait Following<T = Value>: Send + 'static {
    /// The next change. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Change<T>> + Send;
}

// === impl Pages ===

impl<A: HostApi> Pages<'_, A> {
    /// The objects of the next page; `None` after the last.
    pub async fn next<T: Object>(&mut self) -> Result<Option<Vec<T>>, ApiError> {
        let Some(from) = &self.next else { return Ok(None) };
        let page = self.api.page(self.path, self.selection, from).await?;
        self.next = page.next;
        Ok(Some(page.items))
    }
}

// === impl Object ===

impl<T: DeserializeOwned + Send + 'static> Object for T {}

// === impl HostApi for Api ===

impl HostApi for Api {
    type Following<T: Object> = Reflector;

    async fn get(&self, path: &str) -> Result<Value, ApiError> {
        Self::get(self, path).await
    }

    async fn read<T: Object>(&self, path: &str) -> Result<T, ApiError> {
        Self::read(self, path).await
    }

    async fn page<T: Object>(&self, path: &str, selection: &Selection, from: &Position) -> Result<Page<T>, ApiError> {
        Self::page(self, path, selection, from).await
    }

    async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        Self::create(self, path, object).await
    }

    async fn update(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        Self::update(self, path, object).await
    }

    async fn create_text(&self, path: &str, object: String) -> Result<(), ApiError> {
        Self::create_text(self, path, object).await
    }

    async fn patch_text(&self, path: &str, patch: String) -> Result<(), ApiError> {
        Self::patch_text(self, path, PatchKind::Strategic, patch).await
    }

    async fn apply(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.patch(path, PatchKind::Apply, object).await
    }

    async fn delete<T: Object>(&self, path: &str, options: &Value) -> Result<T, ApiError> {
        Self::delete(self, path, options).await
    }

    fn follow<T: Object>(&self, path: &str, labels: &str) -> Reflector {
        Reflector::new(self, path, Selection::labelled(labels))
    }

    fn follow_in<T: Object>(&self, path: &str, labels: &str, is_in: fn(&str) -> bool) -> Reflector {
        Reflector::new(self, path, Selection::labelled(labels)).only_in(is_in)
    }
}

impl<T: Object> Following<T> for Reflector {
    async fn next(&mut self) -> Change<T> {
        Self::next(self).await
    }
}
