//! Access reviews, which are mapped differently from other objects: see [`request`](crate::request).

/// The attributes of an access review as the client wrote them. `None` for absent ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginalAttributes {
    /// `resourceAttributes.namespace`
    pub namespace: Option<String>,
    /// `resourceAttributes.name`, if it is that of a namespace or of a ClusterRole.
    pub name: Option<String>,
}
