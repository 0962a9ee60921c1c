//! The request that all handlers get.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, header};
use kube_wire::query::{ListOptions, Query, WriteOptions};
use kube_wire::{ResourceRequest, Status};

use crate::api::Api;
use crate::auth::User;
use crate::auth::rbac::RequestAttributes;
use crate::headers;
use crate::kinds::Kind;
use crate::write::Writer;

/// An authorized request for a resource, without its body, which can be read only once.
#[derive(Debug)]
pub(crate) struct ApiRequest<'a> {
    pub(crate) api: &'a Arc<Api>,
    /// The caller, or the user that it impersonates.
    pub(crate) user: &'a User,
    pub(crate) kind: &'static Kind,
    /// The verb, and the names in the path.
    pub(crate) resource: &'a ResourceRequest<'a>,
    pub(crate) query: &'a Query<'a>,
    pub(crate) headers: &'a HeaderMap,
}

// === impl ApiRequest ===

impl ApiRequest<'_> {
    /// The namespace of the path, if the kind is namespaced.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.resource.namespace().filter(|_| self.kind.namespaced)
    }

    /// The name in the path; empty if it has none.
    pub(super) fn name(&self) -> &str {
        self.resource.path_name().unwrap_or_default()
    }

    /// The value of a header, if it is text.
    pub(super) fn header(&self, name: HeaderName) -> Option<&str> {
        headers::text(self.headers, name)
    }

    /// The attributes of the same request with another verb.
    pub(super) fn attributes<'s>(&'s self, verb: &'s str) -> RequestAttributes<'s> {
        RequestAttributes::Resource {
            verb,
            group: self.kind.group,
            resource: self.kind.resource,
            subresource: self.resource.subresource(),
            namespace: self.resource.namespace(),
            name: self.resource.path_name(),
        }
    }

    pub(super) fn write_options(&self) -> Result<WriteOptions<'_>, Status> {
        WriteOptions::parse(self.query).map_err(|error| Status::bad_request(error.to_string()))
    }

    pub(super) fn list_options(&self) -> Result<ListOptions<'_>, Status> {
        ListOptions::parse(self.query).map_err(|error| Status::bad_request(error.to_string()))
    }

    /// A positive number in the query. Zero and negative numbers are treated as absent.
    pub(super) fn number<N: TryFrom<i64>>(&self, key: &'static str) -> Result<Option<N>, Status> {
        let refused = |why: String| Status::bad_request(why);
        let text = self.query.first(key).map_err(|error| refused(error.to_string()))?;
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
        let number: i64 =
            text.parse().map_err(|_| refused(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))?;
        Ok(Some(number).filter(|number| *number > 0).and_then(|number| N::try_from(number).ok()))
    }

    /// The field manager: the one in the query, or else the first part of the user agent (`managerOrUserAgent` in
    /// apiserver's `handlers/create.go`).
    pub(super) fn manager(&self) -> Result<String, Status> {
        let stated = self.write_options()?.field_manager;
        let agent = self.header(header::USER_AGENT).unwrap_or_default();
        let stated = if stated.is_empty() { agent.split('/').next().unwrap_or_default() } else { &stated };
        Ok(stated.to_owned())
    }

    /// The caller as the author of a write.
    pub(super) fn writer<'w>(&'w self, manager: &'w str) -> Writer<'w> {
        Writer { user: Some(self.user), manager: Some(manager) }
    }
}
