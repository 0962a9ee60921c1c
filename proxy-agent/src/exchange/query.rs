//! Lists and watches: maps their query to host names.

use std::convert::Infallible;
use std::sync::Arc;

use kube_wire::gvr::GroupKind;
use kube_wire::query::{ListOptions, Query};
use kube_wire::selector::{FieldSelector, LabelSelector, LabelSelectorError};
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status};
use rewrite::name::is_hidden;
use rewrite::pod_security::requested_key;
use rewrite::view::Filter;
use rewrite::{Mapping, Program, VirtualNamespace};

use crate::exchange::call::Call;
use crate::exchange::kinds::RBAC;
use crate::refusal::Refusal;
use crate::seal::Unopened;
use crate::translate::{Arrivals, ListNamespaces, ResponseTransform, beginning};
use virtual_cluster::namespaces::NOBODYS;
use virtual_cluster::policy::{self, Class};

/// The label with the name of the Namespace, which every Namespace has.
const METADATA_NAME: &str = "kubernetes.io/metadata.name";

/// The fields of any kind that name a namespace (see apimachinery's `pkg/runtime/conversion.go`, and that of Events).
const NAMESPACE_FIELDS: [&str; 3] = ["metadata.namespace", "involvedObject.namespace", "regarding.namespace"];

/// The maximum number of different requirements in a label selector that the agent applies itself. kube-apiserver has no such
/// limit, but it does not serve all virtual clusters on one thread.
const MAX_REQUIREMENTS: usize = 1000;

/// The kind in kube-apiserver's refusals of such parameters (`ListResource` in apiserver's `endpoints/handlers/get.go`).
const LIST_OPTIONS: GroupKind<'_> = GroupKind { group: "meta.k8s.io", kind: "ListOptions" };

/// `handleCompactedErrorForPaging` in apiserver's `storage/etcd3/errors.go`.
const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You must \
                                start a new list without the continue parameter.";

/// The query of a list, watch or deletecollection in host names, with `also` added to its label selector.
pub(crate) fn list_query(
    call: &Call<'_>,
    request: &ResourceRequest<'_>,
    also: Option<&LabelSelector>,
) -> Result<Query<'static>, Refusal> {
    let query = call.api.info.query();
    let options = ListOptions::parse(query)?;
    let mut mapped = query.borrowed().into_owned();
    if !options.shard_selector.is_empty() {
        return Err(bad("shardSelector is not supported by virtual clusters"));
    }
    label_selector(call, request, &options, also, &mut mapped)?;
    field_selector(call, request, &options, &mut mapped)?;
    if !options.continue_token.is_empty() {
        let list = list_id(call, request);
        match call.services.seal.open(&options.continue_token, &list) {
            Ok(token) => mapped.set("continue", &token),
            Err(Unopened::Expired) => return Err(Status::expired(CONTINUE_EXPIRED).into()),
            Err(Unopened::Nonsense) => {}
        }
    }
    Ok(mapped)
}

/// The transform for the response to a list or watch.
pub(crate) fn list_transform(
    call: &Call<'_>,
    request: &ResourceRequest<'_>,
    program: Program,
    filter: Filter,
) -> Result<ResponseTransform, Refusal> {
    let options = ListOptions::parse(call.api.info.query())?;
    let watch = options.watch || request.has_watch_prefix();
    Ok(if watch {
        let requested = request.namespace().and_then(|namespace| VirtualNamespace::new(namespace).ok());
        let arrivals = Arrivals::new(Arc::clone(call.api.cluster), requested);
        // The event of a Namespace that leaves can come after the index has forgotten it.
        let is_in_namespaces =
            matches!(filter, Filter::ByNamespace | Filter::ByName | Filter::ByClaim | Filter::ByParent);
        let arrivals = match filter {
            Filter::ByNode => arrivals.of_nodes(),
            _ if is_in_namespaces || request.namespace().is_some() => arrivals.in_namespaces(),
            _ => arrivals,
        };
        let bookmarks = beginning(&options);
        ResponseTransform::Watch { program, filter, arrivals, bookmarks, mapped_frames: None }
    } else {
        let (seal, token) = (Arc::clone(&call.services.seal), list_id(call, request));
        let (counted, cluster) = (request.namespace().is_some(), Arc::clone(call.api.cluster));
        let namespaces = if request.verb().is_read() {
            ListNamespaces::new(cluster, call.services.host.clone())
        } else {
            ListNamespaces::without_waiting(cluster)
        };
        ResponseTransform::List { program, filter, seal, token, counted, namespaces }
    })
}

fn list_id(call: &Call<'_>, request: &ResourceRequest<'_>) -> String {
    let (group, resource) = (request.group(), request.resource());
    format!("{} {group}/{resource} {}", call.api.cluster.name, request.namespace().unwrap_or_default())
}

/// The label selector of a request to which the agent applies it, because the host has other labels than the client sees. The
/// agent applies it to each object of the host, so the number of requirements is limited.
pub(crate) fn evaluated_selector(options: &ListOptions<'_>) -> Result<LabelSelector, Refusal> {
    let selector: LabelSelector = options.label_selector.parse().map_err(|error| bad(format!("{error}")))?;
    let selector = selector.distinct();
    let count = selector.requirements().len();
    if count > MAX_REQUIREMENTS {
        let error = FieldError::too_many("labelSelector", count as u64, MAX_REQUIREMENTS as u64);
        return Err(Status::invalid(LIST_OPTIONS, "", &[error]).into());
    }
    Ok(selector)
}

fn label_selector(
    call: &Call<'_>,
    request: &ResourceRequest<'_>,
    options: &ListOptions<'_>,
    also: Option<&LabelSelector>,
    mapped: &mut Query<'_>,
) -> Result<(), Refusal> {
    if options.label_selector.is_empty() && also.is_none() {
        return Ok(());
    }
    let selector: LabelSelector = options.label_selector.parse().map_err(|error| bad(format!("{error}")))?;
    if selector.requirements().iter().any(|requirement| is_hidden(requirement.key())) {
        return Err(bad(
            "selectors cannot contain labels with the prefix atoll.dev/ or atoll.node-restriction.kubernetes.io/",
        ));
    }
    let selector = selector
        .map_values(METADATA_NAME, |name| Ok(host_name(&call.api.mapping, name)))
        .map_err(|error: LabelSelectorError| bad(error.to_string()))?;
    let selector = parked_selector(call, request, selector)?;
    let selector = match also {
        Some(also) => selector.and(also.clone()),
        None => selector,
    };
    mapped.set("labelSelector", &selector.to_string());
    Ok(())
}

/// The selector with the parked keys of Pod Security labels.
fn parked_selector(
    call: &Call<'_>,
    request: &ResourceRequest<'_>,
    selector: LabelSelector,
) -> Result<LabelSelector, Refusal> {
    if call.api.cluster.pod_security.is_none() || policy::class(request.group_resource()) != Class::Namespaces {
        return Ok(selector);
    }
    let parked = selector.map_keys(|key| requested_key(key).unwrap_or_else(|| key.to_owned()));
    parked.map_err(|error| bad(error.to_string()))
}

fn field_selector(
    call: &Call<'_>,
    request: &ResourceRequest<'_>,
    options: &ListOptions<'_>,
    mapped: &mut Query<'_>,
) -> Result<(), Refusal> {
    if options.field_selector.is_empty() {
        return Ok(());
    }
    let mut selector: FieldSelector = options.field_selector.parse().map_err(|error| bad(format!("{error}")))?;
    for field in NAMESPACE_FIELDS {
        selector = names_in(call, selector, field);
    }
    if request.group().is_empty() && request.resource() == "namespaces" {
        selector = names_in(call, selector, "metadata.name");
    }
    if (request.group(), request.resource()) == (RBAC, "clusterroles") {
        let named = selector.map_values("metadata.name", |name| Ok::<_, Infallible>(call.api.host_role(name)));
        selector = named.unwrap_or_else(|never| match never {});
    }
    if call.api.is_renamed() {
        let host = |name: &str| call.api.mapping.object(name).unwrap_or_else(|_| NOBODYS.to_owned());
        let named = selector.map_values("metadata.name", |name| Ok::<_, Infallible>(host(name)));
        selector = named.unwrap_or_else(|never| match never {});
    }
    mapped.set("fieldSelector", &selector.to_string());
    Ok(())
}

/// The selector with host names for the namespaces that `field` names.
fn names_in(call: &Call<'_>, selector: FieldSelector, field: &str) -> FieldSelector {
    let mapped = selector.map_values(field, |name| Ok::<_, Infallible>(host_name(&call.api.mapping, name)));
    mapped.unwrap_or_else(|never| match never {})
}

/// The host name of a namespace in a selector. A namespace of another owner, or an invalid name, selects nothing.
fn host_name(mapping: &Mapping, name: &str) -> String {
    if name.is_empty() {
        return String::new();
    }
    let host = VirtualNamespace::new(name).ok().and_then(|name| mapping.host(&name).ok());
    host.map_or_else(|| NOBODYS.to_owned(), |host| host.to_string())
}

fn bad(message: impl Into<String>) -> Refusal {
    Status::bad_request(message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_that_the_agent_applies_has_few_different_requirements() {
        let evaluated = |count: usize, of_each: usize| {
            let keys: Vec<_> = (0..count).map(|number| format!("key-{number}")).collect();
            let text = vec![keys.join(","); of_each].join(",");
            let query = format!("labelSelector={text}");
            evaluated_selector(&ListOptions::parse(&Query::new(&*query)).unwrap())
        };
        assert_eq!(evaluated(MAX_REQUIREMENTS, 20).unwrap().requirements().len(), MAX_REQUIREMENTS);
        let status = evaluated(MAX_REQUIREMENTS + 1, 1).unwrap_err().into_status();
        let expected =
            "ListOptions.meta.k8s.io \"\" is invalid: labelSelector: Too many: 1001: must have at most 1000 items";
        assert_eq!((status.code, &*status.message), (422, expected));
    }
}
