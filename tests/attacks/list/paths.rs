//! Paths and media types that several attacks use.

pub(super) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";
