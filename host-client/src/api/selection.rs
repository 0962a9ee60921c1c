//! Which objects, and how much of each.

use http::HeaderValue;
use kube_wire::query::Query;

/// What a list or a watch is narrowed down to. The default is everything, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// As in `kubectl -l`; empty selects all.
    pub labels: String,
    /// As in `kubectl --field-selector`; empty selects all.
    pub fields: String,
    /// How much of each object.
    pub shape: Shape,
}

/// How much of each object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// All of it.
    #[default]
    Whole,
    /// `PartialObjectMetadata`: `apiVersion`, `kind` and `metadata`.
    Metadata,
}

// === impl Selection ===

impl Selection {
    /// Objects with these labels.
    pub fn labelled(labels: &str) -> Self {
        Self { labels: labels.to_owned(), ..Self::default() }
    }

    /// The same objects, and of each only the metadata.
    #[must_use]
    pub fn metadata(self) -> Self {
        Self { shape: Shape::Metadata, ..self }
    }

    /// The query of `path`, with this in it.
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

    /// Of one object, or of those of a watch.
    pub(super) fn of_object(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Whole => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        })
    }
}
