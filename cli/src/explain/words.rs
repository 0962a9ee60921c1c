//! The output of an explanation.

use std::io::{self, Write};

use http::header::HeaderMap;
use kube_wire::{RequestInfo, ResourceRequest, Target, Verb};
use protocol::ClusterName;
use protocol::identity::Identity;
use proxy_agent::exchange::explain::{Explanation, Outcome, Passing, Question, Sent, Shown};
use serde_json::Value;

use super::fields::changes;
use super::request::Asked;

/// The width of the column before the texts.
const WIDTH: usize = 13;

/// Prints one request and its outcome.
pub(super) fn explained(
    asked: &Asked,
    cluster: &ClusterName,
    who: &Identity,
    explanation: &Explanation,
    out: &mut dyn Write,
) -> io::Result<()> {
    let groups = if who.groups.is_empty() { String::new() } else { format!(" in groups {}", who.groups.join(", ")) };
    writeln!(out, "{} {} to {cluster}, by user {}{groups}", asked.method, asked.target, who.user)?;
    line(out, "request", &about(asked))?;
    if let Some(assumed) = &asked.assumed {
        line(out, "assumed", assumed)?;
    }
    for question in &explanation.questions {
        line(out, "first asks", &asks(cluster, question))?;
    }
    match &explanation.outcome {
        Outcome::Refused(status) if explanation.depends_on_the_host() && status.code >= 500 => {
            line(out, "sends", "a request that depends on the host's responses")
        }
        Outcome::Refused(status) => {
            let reason = status.reason.as_str();
            line(out, "refuses", &format!("{} {reason}: {}", status.code, status.message))
        }
        Outcome::Sent(sent) => sent_upstream(asked, cluster, explanation, sent, out),
    }
}

fn sent_upstream(
    asked: &Asked,
    cluster: &ClusterName,
    explanation: &Explanation,
    sent: &Sent,
    out: &mut dyn Write,
) -> io::Result<()> {
    line(out, "sends", &format!("{} {}", sent.method, sent.target))?;
    line(out, "as", &identity(&sent.headers))?;
    if explanation.depends_on_the_host() {
        line(out, "with", "a body that depends on objects of the host")?;
    } else if let Some(object) = &asked.object {
        // The body is JSON, because the object was.
        let sent: Value = serde_json::from_slice(&sent.body).unwrap_or_default();
        let changes = changes(cluster, object, &sent);
        for change in &changes {
            line(out, "field", &format!("{}: {}   ({})", change.field, change.what, change.why))?;
        }
        let rest = if changes.is_empty() { "no field changes" } else { "no other field changes" };
        line(out, "field", rest)?;
    }
    if let Some(otherwise) = &sent.otherwise {
        line(out, "if there is none", &format!("requests {otherwise}, which {cluster} can read on the host"))?;
    }
    if sent.is_namespace_creation {
        line(out, "then", &format!("creates the bindings in the namespace that every namespace of {cluster} has"))?;
    }
    line(out, "shows", &shows(cluster, &sent.shown))
}

fn about(asked: &Asked) -> String {
    let (path, query) =
        asked.target.split_once('?').map_or((&*asked.target, None), |(path, query)| (path, Some(query)));
    let Ok(info) = RequestInfo::parse(&asked.method, path, query) else {
        return "not a request of the Kubernetes API".to_owned();
    };
    match info.target() {
        Target::NonResource(_) => format!("{} of a path that is not a resource", asked.method),
        Target::Resource(request) => format!("{} {}", request.verb().as_str(), object(request)),
    }
}

fn object(request: &ResourceRequest<'_>) -> String {
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

fn asks(cluster: &ClusterName, question: &Question) -> String {
    match question {
        Question::Access { user, verb, resource, name, namespace } => {
            let name = if name.is_empty() { String::new() } else { format!(" {name}") };
            let scope = if *namespace == format!("atoll-root-{cluster}") {
                format!(", the cluster scope of {cluster}")
            } else {
                String::new()
            };
            format!("may {user} {verb} {resource}{name} in {namespace}{scope}? (SubjectAccessReview)")
        }
        Question::Rules { namespace } => {
            format!("do the caller's rules in {namespace} contain this path? (SelfSubjectRulesReview)")
        }
        Question::Node { target } => format!("does the node belong to {cluster}? (GET {target})"),
        Question::Discovery { guessed, namespaced } => {
            let scope = if *namespaced { "namespaced" } else { "cluster-scoped" };
            let guessed = if *guessed { "; this is a guess, which only the host can confirm" } else { "" };
            format!("is this resource served? (usually cached; it is {scope}{guessed})")
        }
        Question::DryRun { method, target } => {
            format!("would the host refuse it? (dry run: {method} {target}; if so, the client gets the host's message)")
        }
        Question::Live { method, target } => format!("what is the current object? ({method} {target})"),
        _ => "a check that this version of atoll cannot describe".to_owned(),
    }
}

/// The identity with which the agent sends the request.
fn identity(headers: &HeaderMap) -> String {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    match headers.get("impersonate-user") {
        Some(user) => {
            let groups: Vec<_> = headers.get_all("impersonate-group").iter().map(text).collect();
            format!("{} in {}; the host's RBAC decides", text(user), groups.join(", "))
        }
        None => "the agent itself, which has checked the rights of the caller before".to_owned(),
    }
}

fn shows(cluster: &ClusterName, shown: &Shown) -> String {
    let passing = |passing: &Passing| match passing {
        Passing::Everything => "everything",
        Passing::InNamespaces => "objects in its namespaces",
        Passing::Namespaces => "its own namespaces",
        Passing::Claimed => "volumes that are claimed in its namespaces",
        Passing::OfNodes => "objects that belong to its nodes",
        Passing::OfServices => "objects that belong to its Services",
        Passing::Autoupdated => "objects that Kubernetes itself maintains",
        Passing::Nothing => "nothing",
        Passing::Roles => "its own roles and those of every cluster",
        Passing::Shared => "its own objects, and those that the operator of the host created",
    };
    match shown {
        Shown::Verbatim => "the unchanged response".to_owned(),
        Shown::Object(None) => format!("the response, with names of {cluster}"),
        Shown::Object(Some(only)) => {
            format!("the response, with names of {cluster}, if it matches {only}; otherwise 404")
        }
        Shown::Review => format!("the response, with names of {cluster} and with what only the agent knows"),
        Shown::List(which) => format!("the list, with names of {cluster}: {}", passing(which)),
        Shown::Watch(which) => format!("the events, with names of {cluster}: {}", passing(which)),
    }
}

fn line(out: &mut dyn Write, what: &str, text: &str) -> io::Result<()> {
    writeln!(out, "  {:WIDTH$} {text}", format!("{what}:"))
}
