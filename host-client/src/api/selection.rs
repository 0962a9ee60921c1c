//! Selects objects, and the part of each object that is read.

use http::HeaderValue;
use kube_wire::query::Query;

/// The selection of a list or watch. The default is all objects, completely.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// A label selector, as in `kubectl -l`. Empty selects all.
    pub labels: String,
    /// A field selector, as in `kubectl --field-selector`. Empty selects all.
    pub fields: String,
    /// The part of each object.
    pub shape: Shape,
}

/// The part of each object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// The whole object.
    #[default]
    Whole,
    /// Only `apiVersion`, `kind` and `metadata` (`PartialObjectMetadata`).
    Metadata,
}

// === impl Selection ===

impl Selection {
    /// Objects with these labels.
    pub fn labelled(labels: &str) -> Self {
        Self { labels: labels.to_owned(), ..Self::default() }
    }

    /// The same objects, but only their metadata.
    #[must_use]
    pub fn metadata(self) -> Self {
        Self { shape: Shape::Metadata, ..self }
    }

    /// Adds the selection to the query of `path`.
    pub(super) fn query<'p>(&self, path: &'p str) -> Query<'p> {
        let mut query = Query::new(path.split_once('?').map_or("", |(_, query)| query));
        if !self.labels.is_empty() {
            query.set("labelSelector", &self.labels);
        }
        if !self.fields.is_empty() {
            query.set("fieldSelector", &self.fields);
        }
        query
    }
}

// === impl Shape ===

impl Shape {
    pub(super) fn of_list(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Whole => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        })
    }

    /// The media type for one object, or for the objects of a watch.
    pub(super) fn of_object(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Whole => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        })
    }
}
