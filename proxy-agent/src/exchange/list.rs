//! Lists and watches: what the query asks for, in host names.

use std::sync::Arc;

use kube_wire::query::{ListOptions, Query};
use kube_wire::selector::{FieldSelector, LabelSelector, LabelSelectorError};
use kube_wire::{ResourceRequest, Status};
use rewrite::view::Filter;
use rewrite::{Mapping, VirtualNamespace};

use super::Asked;
use super::plan::program;
use crate::refusal::Refusal;
use crate::translate::{Arrivals, Show};

/// The label that every Namespace has: its own name.
const METADATA_NAME: &str = "kubernetes.io/metadata.name";

/// Fields that name a namespace, of any kind (see apimachinery's `pkg/runtime/conversion.go`, and Events').
const NAMESPACE_FIELDS: [&str; 3] = ["metadata.namespace", "involvedObject.namespace", "regarding.namespace"];

impl Asked<'_> {
    /// The query of a list, watch or deletecollection in host names, with `also` added to its label selector.
    pub(super) fn list_query(
        &self,
        request: &ResourceRequest<'_>,
        also: Option<&LabelSelector>,
    ) -> Result<Query<'static>, Refusal> {
        let query = self.info.query();
        let options = ListOptions::parse(query)?;
        let mut mapped = query.borrowed().into_owned();
        if !options.shard_selector.is_empty() {
            return Err(bad("shardSelector is not supported by virtual clusters"));
        }
        self.label_selector(&options, also, &mut mapped)?;
        self.field_selector(request, &options, &mut mapped)?;
        if !options.continue_token.is_empty() {
            let list = self.list_id(request);
            let token = self.parts.seal.open(&options.continue_token, &list);
            mapped.set("continue", &token.map_err(|error| Refusal::from(Status::expired(error.to_string())))?);
        }
        Ok(mapped)
    }

    /// How the answer to a list or watch is shown.
    pub(super) fn list_show(&self, request: &ResourceRequest<'_>, filter: Filter) -> Result<Show, Refusal> {
        let watch = ListOptions::parse(self.info.query())?.watch || request.has_watch_prefix();
        let program = program(request);
        Ok(if watch {
            let asked = request.namespace().and_then(|namespace| VirtualNamespace::new(namespace).ok());
            Show::Watch { program, filter, arrivals: Arrivals::new(Arc::clone(self.cluster), asked) }
        } else {
            let (seal, token) = (Arc::clone(&self.parts.seal), self.list_id(request));
            Show::List { program, filter, seal, token, counted: request.namespace().is_some() }
        })
    }

    fn list_id(&self, request: &ResourceRequest<'_>) -> String {
        let (group, resource) = (request.group(), request.resource());
        format!("{} {group}/{resource} {}", self.cluster.name, request.namespace().unwrap_or_default())
    }

    fn label_selector(
        &self,
        options: &ListOptions<'_>,
        also: Option<&LabelSelector>,
        mapped: &mut Query<'_>,
    ) -> Result<(), Refusal> {
        if options.label_selector.is_empty() && also.is_none() {
            return Ok(());
        }
        let selector: LabelSelector = options.label_selector.parse().map_err(|error| bad(format!("{error}")))?;
        if selector.requirements().iter().any(|requirement| requirement.key().starts_with("atoll.dev/")) {
            return Err(bad("labels of atoll.dev cannot be selected by"));
        }
        let selector = selector
            .map_values(METADATA_NAME, |name| host_name(&self.mapping, name))
            .map_err(|error: NotMapped| bad(error.to_string()))?;
        let selector = match also {
            Some(also) => selector.and(also.clone()),
            None => selector,
        };
        mapped.set("labelSelector", &selector.to_string());
        Ok(())
    }

    fn field_selector(
        &self,
        request: &ResourceRequest<'_>,
        options: &ListOptions<'_>,
        mapped: &mut Query<'_>,
    ) -> Result<(), Refusal> {
        if options.field_selector.is_empty() {
            return Ok(());
        }
        let mut selector: FieldSelector = options.field_selector.parse().map_err(|error| bad(format!("{error}")))?;
        for field in NAMESPACE_FIELDS {
            selector = selector
                .map_values(field, |name| host_name(&self.mapping, name))
                .map_err(|error: NotMapped| bad(error.to_string()))?;
        }
        if request.group().is_empty() && request.resource() == "namespaces" {
            selector = selector
                .map_values("metadata.name", |name| host_name(&self.mapping, name))
                .map_err(|error: NotMapped| bad(error.to_string()))?;
        }
        mapped.set("fieldSelector", &selector.to_string());
        Ok(())
    }
}

/// A selector's value that cannot be told to the host.
#[derive(Debug, thiserror::Error)]
enum NotMapped {
    /// It could be no namespace of anybody's.
    #[error("{0:?} in a selector is not the name of a namespace")]
    Name(String),
    /// The selector would not be one with the host's name.
    #[error(transparent)]
    Label(#[from] LabelSelectorError),
}

/// The name of no namespace, since DNS labels have no dots.
pub(super) const NOBODYS: &str = "taken.by.somebody.else";

/// A name that leads to somebody else's namespace selects nothing: it becomes one that no namespace can have.
fn host_name(mapping: &Mapping, name: &str) -> Result<String, NotMapped> {
    if name.is_empty() {
        return Ok(String::new());
    }
    let virtual_name = VirtualNamespace::new(name).map_err(|_| NotMapped::Name(name.chars().take(80).collect()))?;
    Ok(match mapping.host(&virtual_name) {
        Ok(host) => host.to_string(),
        Err(_) => NOBODYS.to_owned(),
    })
}

fn bad(message: impl Into<String>) -> Refusal {
    Status::bad_request(message).into()
}
