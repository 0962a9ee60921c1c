//! What is printed of an explanation.

use std::io::{self, Write};

use http::header::HeaderMap;
use kube_wire::{RequestInfo, ResourceRequest, Target, Verb};
use protocol::ClusterName;
use protocol::identity::Identity;
use proxy_agent::exchange::explain::{Explanation, Outcome, Passing, Question, Sent, Shown};
use serde_json::Value;

use super::fields::changes;
use super::request::Asked;

/// How wide the words before a colon are.
const WIDTH: usize = 13;

/// Prints one request and what becomes of it.
pub(super) fn explained(
    asked: &Asked,
    cluster: &ClusterName,
    who: &Identity,
    explanation: &Explanation,
    out: &mut dyn Write,
) -> io::Result<()> {
    let groups = if who.groups.is_empty() { String::new() } else { format!(" of {}", who.groups.join(", ")) };
    writeln!(out, "{} {} to {cluster}, by {}{groups}", asked.method, asked.target, who.user)?;
    line(out, "it is", &about(asked))?;
    if let Some(assumed) = &asked.assumed {
        line(out, "assumed", assumed)?;
    }
    for question in &explanation.questions {
        line(out, "first asks", &asks(cluster, question))?;
    }
    match &explanation.outcome {
        Outcome::Refused(status) if explanation.depends_on_the_host() && status.code >= 500 => {
            line(out, "sends", "what depends on the answer; it cannot be said without the host")
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
        line(out, "with", "a body that depends on what the host has")?;
    } else if let Some(object) = &asked.object {
        // What is sent is JSON, since the object was.
        let sent: Value = serde_json::from_slice(&sent.body).unwrap_or_default();
        let changes = changes(cluster, object, &sent);
        for change in &changes {
            line(out, "field", &format!("{}: {}   ({})", change.field, change.what, change.why))?;
        }
        let rest = if changes.is_empty() { "all of it is sent as it is" } else { "all else is sent as it is" };
        line(out, "field", rest)?;
    }
    if let Some(otherwise) = &sent.otherwise {
        line(out, "if there is none", &format!("asks for {otherwise}, which the host lends to {cluster}"))?;
    }
    if sent.is_birth {
        line(out, "then", &format!("gives the namespace the bindings that every namespace of {cluster} has"))?;
    }
    line(out, "shows", &shows(cluster, &sent.shown))
}

fn about(asked: &Asked) -> String {
    let (path, query) =
        asked.target.split_once('?').map_or((&*asked.target, None), |(path, query)| (path, Some(query)));
    let Ok(info) = RequestInfo::parse(&asked.method, path, query) else { return "no request of Kubernetes".to_owned() };
    match info.target() {
        Target::NonResource(_) => format!("{} of a path that is no resource", asked.method),
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
        _ if matches!(request.verb(), Verb::List | Verb::Watch) => format!("{text} of the whole cluster"),
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
            format!("do the caller's rules in {namespace} name this path? (SelfSubjectRulesReview)")
        }
        Question::Namespace { name } => {
            format!("is there a namespace {name}, and is it {cluster}'s? (as a rule known already)")
        }
        Question::Node { target } => format!("is the node one of {cluster}'s? (GET {target})"),
        Question::Discovery { guessed, namespaced } => {
            let scope = if *namespaced { "namespaces" } else { "no namespace" };
            let guessed = if *guessed { "; a guess, which only the host can confirm" } else { "" };
            format!("is this resource served? (as a rule known already; it is in {scope}{guessed})")
        }
        Question::DryRun { method, target } => {
            format!(
                "what the host says of it, without doing it ({method} {target}); its words are shown if it refuses too"
            )
        }
        Question::Live { method, target } => format!("what is there now ({method} {target})"),
        _ => "something that this version of atoll has no words for".to_owned(),
    }
}

/// As whom it goes upstream.
fn identity(headers: &HeaderMap) -> String {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    match headers.get("impersonate-user") {
        Some(user) => {
            let groups: Vec<_> = headers.get_all("impersonate-group").iter().map(text).collect();
            format!("{} of {}; the host's RBAC decides", text(user), groups.join(", "))
        }
        None => "the agent itself, since what the caller may was asked before".to_owned(),
    }
}

fn shows(cluster: &ClusterName, shown: &Shown) -> String {
    let passing = |passing: &Passing| match passing {
        Passing::Everything => "all that the host sends",
        Passing::InNamespaces => "what is in its namespaces",
        Passing::Namespaces => "its namespaces",
        Passing::Claimed => "what is claimed in its namespaces",
        Passing::OfNodes => "what belongs to its nodes",
        Passing::OfServices => "what belongs to its Services",
        Passing::Autoupdated => "what Kubernetes itself keeps",
        Passing::Nothing => "nothing",
        Passing::Roles => "its own roles and those that every cluster has",
        Passing::Shared => "those that the host's operator has made for all, and those that it has itself",
    };
    match shown {
        Shown::Verbatim => "the answer as it is".to_owned(),
        Shown::Object(None) => format!("the answer in the names of {cluster}"),
        Shown::Object(Some(only)) => format!("the answer in the names of {cluster}, if it has {only}; else 404"),
        Shown::Review => format!("the answer in the names of {cluster}, with what only the agent knows"),
        Shown::List(which) => format!("of the list, in the names of {cluster}, {}", passing(which)),
        Shown::Watch(which) => format!("of the events, in the names of {cluster}, those of {}", passing(which)),
    }
}

fn line(out: &mut dyn Write, what: &str, text: &str) -> io::Result<()> {
    writeln!(out, "  {:WIDTH$} {text}", format!("{what}:"))
}
