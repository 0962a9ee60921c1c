//! The target of a request: the verb, and a resource or a path.
//!
//! The algorithm is that of apiserver's `pkg/endpoints/request/requestinfo.go`, so that authorisation here uses the same
//! attributes as the host's. Its syntax is stricter ([`PathError`] lists the differences), because the result decides what
//! the caller may reach: it refuses a path that two readers could split differently.
//!
//! [`ResourceRequest::path_with`] is the reverse: the path of the same request with another namespace or name.
//!
//! What is not here: whether the resource exists, is namespaced, or may be reached.

mod error;
mod path;
mod resource;
#[cfg(test)]
mod tests;
mod verb;

use std::borrow::Cow;

use http::Method;

use crate::query::{ListOptions, Query};
use crate::selector::FieldSelector;

pub use error::{PathError, RequestError};
pub use resource::{ResourcePath, ResourceRequest};
pub use verb::Verb;

/// One parsed request. It is immutable: all later steps read it, and none parses again.
#[derive(Clone, Debug)]
pub struct RequestInfo<'a> {
    method: Method,
    query: Query<'a>,
    target: Target<'a>,
}

/// The target of a request.
#[derive(Clone, Debug)]
pub enum Target<'a> {
    /// An API object, a collection of them, or a subresource.
    Resource(ResourceRequest<'a>),
    /// Discovery, health, metrics, and other paths that are not below the version of a group.
    NonResource(NonResourceRequest<'a>),
}

/// A request for a path that is not a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonResourceRequest<'a> {
    path: Cow<'a, str>,
    verb: &'static str,
}

/// Whether a path is a health check: `/healthz`, `/livez`, `/readyz`, or an individual check below these.
pub fn is_health_check(path: &str) -> bool {
    matches!(path.trim_start_matches('/').split('/').next(), Some("healthz" | "livez" | "readyz"))
}

// === impl RequestInfo ===

impl<'a> RequestInfo<'a> {
    /// Parses a request line. `path` and `query` are not decoded (`path()` and `query()` of `http::Uri`).
    ///
    /// Accepted methods are GET, HEAD, POST, PUT, PATCH and DELETE, and below a pod's or service's proxy OPTIONS (`proxyMethods` in kubernetes'
    /// `pkg/registry/core/pod/rest/subresources.go`).
    pub fn parse(method: &Method, path: &'a str, query: Option<&'a str>) -> Result<Self, RequestError> {
        let verbs = verb::of_method(method).ok_or(RequestError::Method)?;
        let query = Query::new(query.unwrap_or_default());
        let parsed = path::parse(path)?;
        if verbs.resource == Verb::Options && !parsed.as_ref().is_some_and(path::ParsedPath::takes_options) {
            return Err(RequestError::Method);
        }
        let Some(parsed) = parsed else {
            query.check()?;
            let path = path::decode_all(path)?;
            let target = Target::NonResource(NonResourceRequest { path, verb: verbs.non_resource });
            return Ok(Self { method: method.clone(), query, target });
        };
        if !parsed.is_proxy() {
            // Below a proxy subresource, the query belongs to the backend.
            query.check()?;
        }
        let (verb, selected_name) = if parsed.watch_prefix {
            if verbs.resource != Verb::Get {
                return Err(RequestError::Method);
            }
            (Verb::Watch, None)
        } else if parsed.name.is_some() {
            (verbs.resource, None)
        } else {
            collection_verb(verbs.resource, &query)?
        };
        let resource = ResourceRequest::new(parsed, verb, selected_name);
        Ok(Self { method: method.clone(), query, target: Target::Resource(resource) })
    }

    /// The method of the request line.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The query string, unchanged.
    pub fn query(&self) -> &Query<'a> {
        &self.query
    }

    /// The target of the request.
    pub fn target(&self) -> &Target<'a> {
        &self.target
    }

    /// The resource request, if it is one.
    pub fn resource(&self) -> Option<&ResourceRequest<'a>> {
        match &self.target {
            Target::Resource(resource) => Some(resource),
            Target::NonResource(_) => None,
        }
    }

    /// The verb for authorisation: `list`, `deletecollection`... For a path that is not a resource, the method in lower
    /// case.
    pub fn verb(&self) -> &'static str {
        match &self.target {
            Target::Resource(resource) => resource.verb().as_str(),
            Target::NonResource(path) => path.verb,
        }
    }

    /// Whether the response may last as long as the client likes, so that an API server has no time limit for it, and does
    /// not count the request towards `--max-requests-inflight` (`LongRunningFunc` in kubernetes'
    /// `pkg/controlplane/apiserver/config.go`).
    pub fn is_long_running(&self) -> bool {
        self.resource().is_some_and(|request| {
            let subresource = request.subresource().unwrap_or_default();
            request.verb() == Verb::Watch || ["attach", "exec", "log", "portforward", "proxy"].contains(&subresource)
        })
    }

    /// The same request, owned, for tasks that outlive the request head.
    pub fn into_owned(self) -> RequestInfo<'static> {
        RequestInfo {
            method: self.method,
            query: self.query.into_owned(),
            target: match self.target {
                Target::Resource(resource) => Target::Resource(resource.into_owned()),
                Target::NonResource(path) => Target::NonResource(path.into_owned()),
            },
        }
    }
}

/// Without a name, `get` is a `list` or a `watch` and `delete` is a `deletecollection`. A list or watch that selects
/// one `metadata.name` is authorised as a request for that name.
fn collection_verb(verb: Verb, query: &Query<'_>) -> Result<(Verb, Option<String>), RequestError> {
    match verb {
        Verb::Get => {}
        Verb::Delete => {
            // Validated although unused here: which objects are deleted must not depend on how a repeated key is read.
            ListOptions::parse(query)?;
            return Ok((Verb::DeleteCollection, None));
        }
        other => return Ok((other, None)),
    }
    let options = ListOptions::parse(query)?;
    let verb = if options.watch { Verb::Watch } else { Verb::List };
    if options.field_selector.is_empty() {
        return Ok((verb, None));
    }
    let selector: FieldSelector = options.field_selector.parse()?;
    // `IsPathSegmentName` as in Kubernetes: an invalid name is ignored, not refused.
    let name = selector.exact("metadata.name").filter(|name| crate::name::path_segment(name).is_ok());
    Ok((verb, name.map(str::to_owned)))
}

// === impl NonResourceRequest ===

impl NonResourceRequest<'_> {
    /// The path, decoded. It begins with `/`, may end with `/`, and contains no empty, `.` or `..` segment.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The method in lower case, as in rules about nonResourceURLs.
    pub fn verb(&self) -> &'static str {
        self.verb
    }

    /// The same request, owned.
    pub fn into_owned(self) -> NonResourceRequest<'static> {
        NonResourceRequest { path: Cow::Owned(self.path.into_owned()), verb: self.verb }
    }
}
