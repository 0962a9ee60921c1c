//! The name of a span, which does not depend on the names of objects.

use http::Method;
use kube_wire::{RequestInfo, ResourceRequest};

/// Resources can be custom ones, and clients may request any name of a group or a resource.
const MAX_ROUTE: usize = 256;

/// The path of a resource with placeholders instead of names, as kube-apiserver names its spans
/// (`getSpanNameFromRequestInfo` in apiserver's `pkg/endpoints/filters/traces.go`). `None` for other paths.
pub(crate) fn route(info: &RequestInfo<'_>) -> Option<String> {
    let request = info.resource()?;
    let mut route = if request.group().is_empty() { "/api".to_owned() } else { format!("/apis/{}", request.group()) };
    let mut push = |segment: &str| {
        route.push('/');
        route.push_str(segment);
    };
    push(request.version());
    if request.namespace().is_some() && !request.is_namespace() {
        push("namespaces/{namespace}");
    }
    push(request.resource());
    if request.path_name().is_some() {
        push("{name}");
    }
    if let Some(subresource) = request.subresource() {
        push(subresource);
    }
    Some(short(&route))
}

/// The resource as in rules of RBAC, with its group: `deployments.apps/scale`.
pub(crate) fn resource(request: &ResourceRequest<'_>) -> String {
    let resource = request.group_resource().to_string();
    short(&match request.subresource() {
        Some(subresource) => format!("{resource}/{subresource}"),
        None => resource,
    })
}

/// The name of a span: the method, and the route if there is one.
pub(crate) fn name(method: &Method, route: Option<&str>) -> String {
    // `Method` accepts any token.
    let method = short(method.as_str());
    route.map_or_else(|| method.clone(), |route| format!("{method} {route}"))
}

pub(crate) fn short(text: &str) -> String {
    text.chars().take(MAX_ROUTE).collect()
}

#[cfg(test)]
mod tests {
    use http::Uri;

    use super::*;

    fn route_of(target: &str) -> Option<String> {
        let uri: Uri = target.parse().unwrap();
        route(&RequestInfo::parse(&Method::GET, uri.path(), uri.query()).unwrap())
    }

    #[test]
    fn a_route_has_no_names() {
        for (target, expected) in [
            ("/api/v1/pods?watch=1", Some("/api/v1/pods")),
            ("/api/v1/namespaces/shop", Some("/api/v1/namespaces/{name}")),
            ("/api/v1/namespaces/shop/pods", Some("/api/v1/namespaces/{namespace}/pods")),
            ("/api/v1/namespaces/shop/pods/web/exec", Some("/api/v1/namespaces/{namespace}/pods/{name}/exec")),
            (
                "/apis/apps/v1/namespaces/shop/deployments/web",
                Some("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
            ),
            ("/version", None),
            ("/api", None),
        ] {
            assert_eq!(route_of(target).as_deref(), expected, "{target}");
        }
    }

    #[test]
    fn a_route_is_short() {
        let long = format!("/apis/{}/v1/{}", "a".repeat(2000), "b".repeat(2000));
        assert!(route_of(&long).unwrap().len() <= MAX_ROUTE);
        assert_eq!(name(&Method::GET, None), "GET");
        assert_eq!(name(&Method::POST, Some("/api/v1/pods")), "POST /api/v1/pods");
    }
}
