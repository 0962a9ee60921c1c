//! A request for a resource, and its path.

use std::borrow::Cow;
use std::fmt;

use super::Verb;
use super::path::ParsedPath;
use crate::gvr::{GroupResource, GroupVersionResource};
use crate::name::SegmentName;
use crate::percent;

/// A request for an object, a collection or a subresource. All text is decoded.
#[derive(Clone, Debug)]
pub struct ResourceRequest<'a> {
    verb: Verb,
    group: Cow<'a, str>,
    version: Cow<'a, str>,
    resource: Cow<'a, str>,
    subresource: Option<Cow<'a, str>>,
    namespace: Option<SegmentName<'a>>,
    name: Option<SegmentName<'a>>,
    selected_name: Option<String>,
    remainder: Cow<'a, str>,
    watch_prefix: bool,
}

/// The parts of a resource path. Its `Display` is the percent-encoded path.
///
/// ```
/// # use kube_wire::request_info::ResourcePath;
/// # use kube_wire::name::SegmentName;
/// let path = ResourcePath {
///     namespace: Some(SegmentName::new("edge").unwrap()),
///     name: Some(SegmentName::new("a:b").unwrap()),
///     ..ResourcePath::new("apps", "v1", "deployments")
/// };
/// assert_eq!(path.to_string(), "/apis/apps/v1/namespaces/edge/deployments/a:b");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePath<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Whether to use the legacy `/watch/` form.
    pub watch_prefix: bool,
    /// `None` for cluster-scoped resources and for all namespaces at once. Ignored when `resource` is `namespaces`,
    /// whose name is the namespace.
    pub namespace: Option<SegmentName<'a>>,
    /// Plural, lower-case.
    pub resource: &'a str,
    /// `None` for a collection.
    pub name: Option<SegmentName<'a>>,
    /// Only together with a name.
    pub subresource: Option<&'a str>,
    /// Appended unchanged after `proxy`: empty, or beginning with `/`.
    pub remainder: &'a str,
}

// === impl ResourceRequest ===

impl<'a> ResourceRequest<'a> {
    pub(super) fn new(path: ParsedPath<'a>, verb: Verb, selected_name: Option<String>) -> Self {
        Self {
            verb,
            group: path.group,
            version: path.version,
            resource: path.resource,
            subresource: path.subresource,
            namespace: path.namespace,
            name: path.name,
            selected_name,
            remainder: Cow::Borrowed(path.remainder),
            watch_prefix: path.watch_prefix,
        }
    }

    /// The verb.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// API group; empty for the core group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// API version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Plural, lower-case: `pods`.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// `status`, `log`, `proxy`...
    pub fn subresource(&self) -> Option<&str> {
        self.subresource.as_deref()
    }

    /// The namespace in the path. For `/namespaces/{n}` itself it is `n`, as in Kubernetes.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_ref().map(SegmentName::as_str)
    }

    /// The name for authorisation: the name in the path, or the one that a list or watch selects by `metadata.name`.
    pub fn name(&self) -> Option<&str> {
        self.path_name().or(self.selected_name.as_deref())
    }

    /// The name in the path only.
    pub fn path_name(&self) -> Option<&str> {
        self.name.as_ref().map(SegmentName::as_str)
    }

    /// The unchanged text after the subresource `proxy`. Empty for other requests.
    pub fn remainder(&self) -> &str {
        &self.remainder
    }

    /// Whether the path is the legacy `/watch/` form, which ignores selectors if it has a name.
    pub fn has_watch_prefix(&self) -> bool {
        self.watch_prefix
    }

    /// Group, version and resource together.
    pub fn group_version_resource(&self) -> GroupVersionResource<'_> {
        GroupVersionResource { group: &self.group, version: &self.version, resource: &self.resource }
    }

    /// Group and resource together.
    pub fn group_resource(&self) -> GroupResource<'_> {
        GroupResource { group: &self.group, resource: &self.resource }
    }

    /// Whether the target is a Namespace object (or its subresource), and not an object in a namespace.
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces" && self.name.is_some()
    }

    /// Whether the response is a byte stream of a pod, Service or node, and not an object: apiserver's `CONNECT` operations
    /// (`pkg/registry/core/rest/storage_core.go`). The method determines the verb as usual.
    pub fn is_connect(&self) -> bool {
        self.group.is_empty()
            && matches!(
                (self.resource(), self.subresource()),
                ("pods", Some("exec" | "attach" | "portforward" | "proxy")) | ("services" | "nodes", Some("proxy"))
            )
    }

    /// Whether the server of a pod, a Service or a node handles the request, so that neither body is a Kubernetes object.
    pub fn is_proxy(&self) -> bool {
        self.is_connect() && self.subresource() == Some("proxy")
    }

    /// The path of this request, with parts that can be replaced.
    pub fn path(&self) -> ResourcePath<'_> {
        ResourcePath {
            group: &self.group,
            version: &self.version,
            watch_prefix: self.watch_prefix,
            namespace: self.namespace.as_ref().map(SegmentName::borrowed),
            resource: &self.resource,
            name: self.name.as_ref().map(SegmentName::borrowed),
            subresource: self.subresource.as_deref(),
            remainder: &self.remainder,
        }
    }

    /// The path of this request with another namespace, another name, or both. `None` keeps the current value. A namespace
    /// restricts a path over all namespaces. A name turns the path of a collection into that of an object.
    ///
    /// If the target is a Namespace itself, the segment after `/namespaces/` is its name. Then `namespace` is used if there
    /// is no `name`.
    ///
    /// A trailing slash is removed. The text after `proxy` is kept byte for byte.
    pub fn path_with(&self, namespace: Option<&SegmentName<'_>>, name: Option<&SegmentName<'_>>) -> String {
        let mut path = self.path();
        let name = if self.resource == "namespaces" { name.or(namespace) } else { name };
        if let Some(namespace) = namespace {
            path.namespace = Some(namespace.borrowed());
        }
        if let Some(name) = name {
            path.name = Some(name.borrowed());
        }
        path.build()
    }

    /// The same request, owned.
    pub fn into_owned(self) -> ResourceRequest<'static> {
        let owned = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        ResourceRequest {
            verb: self.verb,
            group: owned(self.group),
            version: owned(self.version),
            resource: owned(self.resource),
            subresource: self.subresource.map(owned),
            namespace: self.namespace.map(SegmentName::into_owned),
            name: self.name.map(SegmentName::into_owned),
            selected_name: self.selected_name,
            remainder: owned(self.remainder),
            watch_prefix: self.watch_prefix,
        }
    }
}

// === impl ResourcePath ===

impl<'a> ResourcePath<'a> {
    /// The path of a collection, cluster-wide.
    pub fn new(group: &'a str, version: &'a str, resource: &'a str) -> Self {
        Self {
            group,
            version,
            watch_prefix: false,
            namespace: None,
            resource,
            name: None,
            subresource: None,
            remainder: "",
        }
    }

    /// The path, percent-encoded.
    pub fn build(&self) -> String {
        // `/apis/`, `/watch`, `/namespaces/` and a slash per part; escapes are rare.
        let names = [self.group, self.version, self.resource, self.subresource.unwrap_or_default(), self.remainder];
        let lengths = [&self.namespace, &self.name].map(|name| name.as_ref().map_or(0, |name| name.as_str().len()));
        let length = names.iter().map(|text| text.len()).sum::<usize>() + lengths.iter().sum::<usize>() + 32;
        let mut path = String::with_capacity(length);
        let mut segment = |text: &str| {
            path.push('/');
            percent::encode_segment(&mut path, text);
        };
        if self.group.is_empty() {
            segment("api");
        } else {
            segment("apis");
            segment(self.group);
        }
        segment(self.version);
        if self.watch_prefix {
            segment("watch");
        }
        if let (Some(namespace), true) = (&self.namespace, self.resource != "namespaces") {
            segment("namespaces");
            segment(namespace.as_str());
        }
        segment(self.resource);
        if let Some(name) = &self.name {
            segment(name.as_str());
            if let Some(subresource) = self.subresource {
                segment(subresource);
            }
        }
        path.push_str(self.remainder);
        path
    }
}

impl fmt::Display for ResourcePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.build())
    }
}
