//! Group, version, resource and kind, in the combinations for which Kubernetes has names.
//!
//! These are borrowed views of parsed requests, static tables and documents. They do not validate;
//! [`crate::request_info`] has validated everything from a path.

use std::fmt;

/// `deployments` in `apps`: how authorisation and error messages name a resource, for all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Plural, lower-case: `pods`.
    pub resource: &'a str,
}

/// `Deployment` in `apps`: how validation errors name a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Singular, camel case: `Pod`.
    pub kind: &'a str,
}

/// The content of `apiVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// `v1`, `v1beta2`...
    pub version: &'a str,
}

/// The beginning of a resource path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// `v1`, `v1beta2`...
    pub version: &'a str,
    /// Plural, lower-case: `pods`.
    pub resource: &'a str,
}

/// The content of `apiVersion` and `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// `v1`, `v1beta2`...
    pub version: &'a str,
    /// Singular, camel case: `Pod`.
    pub kind: &'a str,
}

// === impl GroupResource ===

/// `deployments.apps`, and plain `pods` for the core group, as in apimachinery's `schema.GroupResource`.
impl fmt::Display for GroupResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(f, self.resource, self.group)
    }
}

// === impl GroupKind ===

/// `Deployment.apps`, and plain `Pod` for the core group, as in apimachinery's `schema.GroupKind`.
impl fmt::Display for GroupKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(f, self.kind, self.group)
    }
}

// === impl GroupVersion ===

impl<'a> GroupVersion<'a> {
    /// Splits an `apiVersion`: `apps/v1`, or `v1` for the core group. `None` if it has more than one slash or an empty
    /// part.
    pub fn parse(api_version: &'a str) -> Option<Self> {
        let (group, version) = match api_version.split_once('/') {
            Some(("", _)) => return None,
            Some(both) => both,
            None => ("", api_version),
        };
        (!version.is_empty() && !version.contains('/')).then_some(Self { group, version })
    }
}

/// The `apiVersion` form.
impl fmt::Display for GroupVersion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        f.write_str(self.version)
    }
}

// === impl GroupVersionResource ===

impl<'a> GroupVersionResource<'a> {
    /// Without the version.
    pub fn group_resource(&self) -> GroupResource<'a> {
        GroupResource { group: self.group, resource: self.resource }
    }
}

// === impl GroupVersionKind ===

impl<'a> GroupVersionKind<'a> {
    /// Without the version.
    pub fn group_kind(&self) -> GroupKind<'a> {
        GroupKind { group: self.group, kind: self.kind }
    }
}

fn dotted(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    f.write_str(name)?;
    if !group.is_empty() {
        write!(f, ".{group}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_kubernetes_does() {
        assert_eq!(GroupResource { group: "", resource: "pods" }.to_string(), "pods");
        assert_eq!(GroupResource { group: "apps", resource: "deployments" }.to_string(), "deployments.apps");
        assert_eq!(GroupKind { group: "apps", kind: "Deployment" }.to_string(), "Deployment.apps");
    }

    #[test]
    fn api_versions_round_trip() {
        for text in ["v1", "apps/v1", "rbac.authorization.k8s.io/v1beta1"] {
            assert_eq!(GroupVersion::parse(text).unwrap().to_string(), text);
        }
        for bad in ["", "/", "/v1", "apps/", "a/b/c"] {
            assert_eq!(GroupVersion::parse(bad), None, "{bad}");
        }
    }
}
