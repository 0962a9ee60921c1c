//! The output of `atoll explain`.

use std::io::{self, Write};

use http::header::HeaderMap;
use kube_wire::{RequestInfo, ResourceRequest, Target, Verb};
use protocol::ClusterName;
use protocol::identity::Identity;
use proxy_agent::exchange::explain::{Explanation, Outcome, Passing, Question, Sent, Shown};
use serde_json::Value;

use super::fields::changes;
use super::request::ClientRequest;

/// The width of the column with the labels.
const WIDTH: usize = 13;

/// Prints one request and its outcome.
pub(super) fn explained(
    request: &ClientRequest,
    cluster: &ClusterName,
    user: &Identity,
    explanation: &Explanation,
    out: &mut dyn Write,
) -> io::Result<()> {
    let groups = if user.groups.is_empty() { String::new() } else { format!(" in groups {}", user.groups.join(", ")) };
    writeln!(out, "{} {} to {cluster}, by user {}{groups}", request.method, request.target, user.user)?;
    line(out, "request", &describe(request))?;
    if let Some(assumption) = &request.assumption {
        line(out, "assumption", assumption)?;
    }
    for question in &explanation.questions {
        line(out, "check", &check(cluster, question))?;
    }
    match &explanation.outcome {
        Outcome::Refused(status) if explanation.depends_on_the_host() && status.code >= 500 => {
            line(out, "sends", "a request that depends on the responses of the host")
        }
        Outcome::Refused(status) => {
            let reason = status.reason.as_str();
            line(out, "response", &format!("{} {reason}: {}", status.code, status.message))
        }
        Outcome::Sent(sent) => self::sent(request, cluster, explanation, sent, out),
    }
}

fn sent(
    request: &ClientRequest,
    cluster: &ClusterName,
    explanation: &Explanation,
    sent: &Sent,
    out: &mut dyn Write,
) -> io::Result<()> {
    line(out, "sends", &format!("{} {}", sent.method, sent.target))?;
    line(out, "as", &identity(&sent.headers))?;
    if explanation.depends_on_the_host() {
        line(out, "with", "a body that depends on objects of the host")?;
    } else if let Some(object) = &request.object {
        // The body is JSON, because the request is.
        let sent: Value = serde_json::from_slice(&sent.body).unwrap_or_default();
        let changes = changes(cluster, object, &sent);
        for change in &changes {
            line(out, "field", &format!("{}: {}   ({})", change.field, change.values, change.reason))?;
        }
        let rest = if changes.is_empty() { "no field changes" } else { "no other field changes" };
        line(out, "field", rest)?;
    }
    if let Some(otherwise) = &sent.otherwise {
        line(out, "on 404", &format!("sends {otherwise}, an object that {cluster} can read on the host"))?;
    }
    let is_watch = matches!(sent.shown, Shown::Watch(_));
    match sent.hub {
        Some(Ok(())) if !is_watch => {
            line(out, "hub", "answers this list instead of the host while it watches the resource")?;
        }
        Some(Ok(())) => {
            line(
                out,
                "hub",
                "serves this watch instead of the host if another virtual cluster watches the resource, or if many watches \
                 of it are open at the host",
            )?;
        }
        Some(Err(bypass)) => {
            let what = if is_watch { "watch" } else { "list" };
            line(out, "hub", &format!("does not serve this {what}: {bypass}"))?;
        }
        None => {}
    }
    if sent.is_namespace_creation {
        line(out, "then", &format!("creates the bindings that every namespace of {cluster} has"))?;
    }
    line(out, "response", &response(cluster, &sent.shown))
}

fn describe(request: &ClientRequest) -> String {
    let (path, query) =
        request.target.split_once('?').map_or((&*request.target, None), |(path, query)| (path, Some(query)));
    let Ok(info) = RequestInfo::parse(&request.method, path, query) else {
        return "not a request to the Kubernetes API".to_owned();
    };
    match info.target() {
        Target::NonResource(_) => format!("{} of a non-resource path", request.method),
        Target::Resource(request) => format!("{} {}", request.verb().as_str(), resource(request)),
    }
}

fn resource(request: &ResourceRequest<'_>) -> String {
    let mut text = request.resource().to_owned();
    if !request.group().is_empty() {
        text = format!("{text}.{}", request.group());
    }
    if let Some(subresource) = request.subresource() {
        text = format!("{text}/{subresource}");
    }
    if let Some(name) = request.name() {
        text = format!("{text} {name}");
    }
    match request.namespace() {
        Some(namespace) if !request.is_namespace() => format!("{text} in namespace {namespace}"),
        _ if matches!(request.verb(), Verb::List | Verb::Watch) => format!("{text} in all namespaces"),
        _ => text,
    }
}

fn check(cluster: &ClusterName, question: &Question) -> String {
    match question {
        Question::Access { user, verb, resource, name, namespace } => {
            let name = if name.is_empty() { String::new() } else { format!(" {name}") };
            let scope = if *namespace == format!("atoll-root-{cluster}") {
                format!(", the cluster scope of {cluster}")
            } else {
                String::new()
            };
            format!("SubjectAccessReview: can {user} {verb} {resource}{name} in {namespace}{scope}?")
        }
        Question::Rules { namespace } => {
            format!("SelfSubjectRulesReview: do the caller's rules in {namespace} contain this path?")
        }
        Question::Node { target } => format!("GET {target}: does the node belong to {cluster}?"),
        Question::Discovery { guessed, namespaced } => {
            let scope = if *namespaced { "namespaced" } else { "cluster-scoped" };
            let guessed = if *guessed { "; the host must confirm this guess" } else { "" };
            format!("discovery, usually cached: does the host serve the resource? It is {scope}{guessed}")
        }
        Question::DryRun { method, target } => {
            format!("dry run, {method} {target}: would the host refuse it? If so, the client gets the host's message")
        }
        Question::Live { method, target } => format!("{method} {target}: what is the current object?"),
        _ => "a check that this version of atoll cannot describe".to_owned(),
    }
}

/// The identity with which the agent sends the request.
fn identity(headers: &HeaderMap) -> String {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    match headers.get("impersonate-user") {
        Some(user) => {
            let groups: Vec<_> = headers.get_all("impersonate-group").iter().map(text).collect();
            format!("{} in {}; the authorizer of the host decides", text(user), groups.join(", "))
        }
        None => "the agent, which has checked the rights of the caller".to_owned(),
    }
}

fn response(cluster: &ClusterName, shown: &Shown) -> String {
    let included = |objects: &Passing| match objects {
        Passing::Everything => "everything",
        Passing::InNamespaces => "objects in its namespaces",
        Passing::Namespaces => "its own namespaces",
        Passing::Claimed => "volumes that claims in its namespaces have bound",
        Passing::OfNodes => "objects that belong to its nodes",
        Passing::OfServices => "objects that belong to its Services",
        Passing::Autoupdated => "objects that Kubernetes itself maintains",
        Passing::Nothing => "nothing",
        Passing::Roles => "its own roles and those of every cluster",
        Passing::Shared => "its own objects, and those that the operator of the host created",
    };
    match shown {
        Shown::Verbatim => "the response of the host, unchanged".to_owned(),
        Shown::Object(None) => format!("the response of the host, with names of {cluster}"),
        Shown::Object(Some(only)) => {
            format!("the response of the host, with names of {cluster}, if it matches {only}; otherwise 404")
        }
        Shown::Review => format!("the response of the host, with names of {cluster}, completed by the agent"),
        Shown::List(which) => format!("the list, with names of {cluster}: {}", included(which)),
        Shown::Watch(which) => format!("the events, with names of {cluster}: {}", included(which)),
    }
}

fn line(out: &mut dyn Write, label: &str, text: &str) -> io::Result<()> {
    writeln!(out, "  {:WIDTH$} {text}", format!("{label}:"))
}
