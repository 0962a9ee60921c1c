//! Classes of verbs.

use kube_wire::{RequestInfo, Verb};
use ops::metrics::LabelValue;

/// The classes of requests, by their cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerbClass {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Watches.
    Watch,
    /// Creates, changes or deletes.
    Write,
    /// Streams whose duration the client determines: exec, attach, portforward, proxy, and logs.
    Connect,
    /// Discovery, health, and requests that are not Kubernetes requests.
    Other,
}

// === impl VerbClass ===

impl VerbClass {
    /// All classes, in the order of [`VerbClass::index`].
    pub const ALL: [Self; 6] = [Self::Get, Self::List, Self::Watch, Self::Write, Self::Connect, Self::Other];

    /// The class of a request; `None` is one that cannot be parsed.
    pub fn of(info: Option<&RequestInfo<'_>>) -> Self {
        let Some(request) = info.and_then(RequestInfo::resource) else { return Self::Other };
        if ["attach", "exec", "log", "portforward", "proxy"].contains(&request.subresource().unwrap_or_default()) {
            return Self::Connect;
        }
        match request.verb() {
            Verb::Get => Self::Get,
            Verb::List => Self::List,
            Verb::Watch => Self::Watch,
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => Self::Write,
            Verb::Options => Self::Other,
        }
    }

    /// The position in [`VerbClass::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether the duration depends on Atoll and the host. Clients end watches and streams.
    pub fn has_duration(self) -> bool {
        !matches!(self, Self::Watch | Self::Connect)
    }
}

impl LabelValue for VerbClass {
    fn label(&self) -> &str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Write => "write",
            Self::Connect => "connect",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{Method, Uri};

    use super::*;

    #[test]
    fn requests_are_classified_by_their_cost() {
        for (method, uri, class) in [
            (Method::GET, "/api/v1/namespaces/a/pods/b", VerbClass::Get),
            (Method::GET, "/apis/apps/v1/deployments", VerbClass::List),
            (Method::GET, "/apis/apps/v1/deployments?watch=1", VerbClass::Watch),
            (Method::PATCH, "/api/v1/namespaces/a/pods/b", VerbClass::Write),
            (Method::POST, "/api/v1/namespaces/a/pods/b/binding", VerbClass::Write),
            (Method::DELETE, "/api/v1/namespaces/a/pods", VerbClass::Write),
            (Method::GET, "/api/v1/namespaces/a/pods/b/log?follow=1", VerbClass::Connect),
            (Method::POST, "/api/v1/namespaces/a/pods/b/exec", VerbClass::Connect),
            (Method::GET, "/version", VerbClass::Other),
            (Method::TRACE, "/api/v1/pods", VerbClass::Other),
        ] {
            let uri: Uri = uri.parse().unwrap();
            let info = RequestInfo::parse(&method, uri.path(), uri.query()).ok();
            assert_eq!(VerbClass::of(info.as_ref()), class, "{method} {uri}");
        }
        assert!(VerbClass::ALL.iter().enumerate().all(|(index, class)| class.index() == index));
    }
}
