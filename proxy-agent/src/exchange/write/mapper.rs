//! The mappers for bodies.

use std::sync::Arc;

use rewrite::VirtualNamespace;
use rewrite::request::{NamespaceRules, Request};

use crate::exchange::undecided::Undecided;

/// The mapper for bodies of this request.
pub(crate) fn mapper(call: &Undecided<'_>, namespace: Option<&VirtualNamespace>) -> Request {
    let mapper = Request::new(call.api.mapping.clone())
        .with_guard(Arc::clone(&call.api.cluster.guard))
        .with_namespace_rules(Arc::clone(&call.api.cluster.namespace_rules));
    match namespace {
        Some(namespace) => mapper.in_namespace(namespace.clone()),
        None => mapper,
    }
}

/// The mapper for a new Namespace.
pub(crate) fn new_namespace_mapper(call: &Undecided<'_>) -> Request {
    let rules = NamespaceRules::clone(&call.api.cluster.namespace_rules);
    mapper(call, None).with_namespace_rules(Arc::new(rules.with_annotations(call.api.cluster.annotations.entries())))
}
