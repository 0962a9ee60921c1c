//! Hides the mirrors of cluster role bindings from clients (see [`virtual_cluster::provisioner`]).

use kube_wire::selector::LabelSelector;
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::protobuf::ObjectName;

use crate::exchange::kinds::RBAC;
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use virtual_cluster::provisioner::{MIRROR_LABEL, MIRROR_PREFIX};

/// The selector that excludes mirrors from lists, watches and deletecollections. The host evaluates it, so that it
/// also applies to deletions.
pub(crate) fn hidden(request: &ResourceRequest<'_>) -> Option<LabelSelector> {
    is_about(request).then(|| format!("!{MIRROR_LABEL}").parse().expect("a constant selector"))
}

/// Refuses requests that name a mirror, or that would create an object with the name of a mirror. `own_name` returns
/// the name in the body.
pub(crate) fn check(
    request: &ResourceRequest<'_>,
    own_name: impl FnOnce() -> Result<ObjectName, Refusal>,
) -> Result<(), Refusal> {
    if !is_about(request) {
        return Ok(());
    }
    let named = |name: &str| name.starts_with(MIRROR_PREFIX);
    match request.verb() {
        Verb::Create => {
            let own = own_name()?;
            // The host uses `generateName` only if there is no name.
            let name = if own.name.is_empty() { own.generate_name } else { own.name };
            if named(&name) { Err(reserved(&name)) } else { Ok(()) }
        }
        Verb::Update | Verb::Patch => match request.path_name().filter(|name| named(name)) {
            Some(name) => Err(reserved(name)),
            None => Ok(()),
        },
        _ => match request.path_name().filter(|name| named(name)) {
            Some(name) => Err(Status::not_found(request.group_resource(), name).into()),
            None => Ok(()),
        },
    }
}

fn is_about(request: &ResourceRequest<'_>) -> bool {
    request.group() == RBAC && request.resource() == "rolebindings"
}

fn reserved(name: &str) -> Refusal {
    let detail = format!("names that begin with {MIRROR_PREFIX:?} are reserved");
    let error = FieldError::invalid("metadata.name", name, detail);
    let kind = kube_wire::gvr::GroupKind { group: RBAC, kind: "RoleBinding" };
    Unmapped::refusal(Status::invalid(kind, name, &[error]), DryRunScope::Skip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;
    use kube_wire::{RequestInfo, Target};

    fn check_create(resource: &str, name: &str, generate_name: &str) -> Result<(), Refusal> {
        let path = format!("/apis/{RBAC}/v1/namespaces/edge/{resource}");
        let info = RequestInfo::parse(&Method::POST, &path, None).unwrap();
        let Target::Resource(request) = info.target() else { panic!("{path} is a resource") };
        check(request, || Ok(ObjectName { name: name.to_owned(), generate_name: generate_name.to_owned() }))
    }

    #[test]
    fn nothing_is_made_that_looks_like_a_mirror() {
        let mirror = format!("{MIRROR_PREFIX}b");
        assert!(check_create("rolebindings", &mirror, "").is_err());
        assert!(check_create("rolebindings", "", &mirror).is_err());
        assert!(check_create("rolebindings", "b", &mirror).is_ok());
        assert!(check_create("rolebindings", "b", "").is_ok());
        assert!(check_create("roles", &mirror, "").is_ok());
    }

    #[test]
    fn an_object_without_a_readable_name_is_refused() {
        let path = format!("/apis/{RBAC}/v1/namespaces/edge/rolebindings");
        let info = RequestInfo::parse(&Method::POST, &path, None).unwrap();
        let Target::Resource(request) = info.target() else { panic!("{path} is a resource") };
        assert!(check(request, || Err(Status::bad_request("no name").into())).is_err());
    }
}
