//! Explains what the agent would do with a request, and what it would ask the host before.
//!
//! This module decides nothing: the code that plans all requests also plans this one. It uses `dry_run_host` instead of
//! a real host. That host answers yes to every question and records it as a [`Question`]. If the answer of a real host
//! could change the outcome, one of the recorded questions shows it.

mod dry_run_host;
mod question;
mod scope;

use std::future::pending;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use kube_wire::{RequestInfo, Status};
use ops::drain::Tasks;
use ops::files::Watched;
use protocol::ClusterName;
use protocol::identity::Identity;
use rewrite::view::{Certificate, Filter};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::config::ProxyAgentConfiguration;
use crate::exchange::api_request::BodyUse;
use crate::exchange::authenticate::authenticate;
use crate::exchange::body::Body;
use crate::exchange::decide::decide;
use crate::exchange::plan::{After, Plan};
use crate::exchange::services::{Services, ServicesError};
use crate::exchange::shared_list::feed_list_query;
use crate::exchange::shared_watch::watch_query;
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use feeds::Bypass;
use host_client::api::{Change, Following};
use host_client::in_memory::answered_by;
use virtual_cluster::clusters::ClusterError;
use virtual_cluster::namespaces::Namespaces;

use dry_run_host::DryRunHost;
pub use question::Question;
pub use scope::is_namespaced;

/// The explanation of a request.
#[derive(Debug)]
pub struct Explanation {
    /// The questions to the host before the request, in this order. Every answer is assumed to be yes.
    pub questions: Vec<Question>,
    /// What the agent would do then.
    pub outcome: Outcome,
}

/// What the agent would do with the request.
#[derive(Debug)]
pub enum Outcome {
    /// Send this request to the host.
    Sent(Box<Sent>),
    /// Refuse the request.
    Refused(Box<Status>),
}

/// A request as the host gets it.
#[derive(Debug)]
pub struct Sent {
    /// The method. A patch may become a PUT.
    pub method: Method,
    /// The path and query, in host names.
    pub target: String,
    /// The headers, without the agent's credentials.
    pub headers: HeaderMap,
    /// The body, in host names.
    pub body: Bytes,
    /// What the client sees of the response.
    pub shown: Shown,
    /// The request that is sent if the host responds with 404.
    pub otherwise: Option<String>,
    /// Whether the hub can serve the watch or the list instead of the host, or why not. `None` if it is neither a watch nor a
    /// list of any version, or if the configuration shares no watches.
    pub hub: Option<Result<(), Bypass>>,
    /// Whether the request creates a Namespace, so that the agent then writes the bindings of every namespace.
    pub is_namespace_creation: bool,
}

/// What the client sees of the host's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The unchanged response.
    Verbatim,
    /// One object in virtual names, or 404 if it does not have these labels.
    Object(Option<String>),
    /// The response to a review, in virtual names. The agent may replace the host's decision.
    Review,
    /// A list of these objects, in virtual names.
    List(Passing),
    /// A watch of these objects, in virtual names.
    Watch(Passing),
}

/// The objects of a list or watch that a client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// All objects in the response, because the request selects only those.
    Everything,
    /// Those in namespaces of the virtual cluster.
    InNamespaces,
    /// Namespaces of the virtual cluster.
    Namespaces,
    /// Those claimed in namespaces of the virtual cluster.
    Claimed,
    /// Those of the virtual cluster's nodes.
    OfNodes,
    /// Those that belong to objects in its namespaces: IPAddresses.
    OfServices,
    /// Those that Kubernetes itself maintains: FlowSchemas and PriorityLevelConfigurations.
    Autoupdated,
    /// None, for objects that act on the whole host.
    Nothing,
    /// The cluster's own, and those that every cluster has: ClusterRoles.
    Roles,
    /// Those of the operator, and those that the cluster has: definitions and classes.
    Shared,
}

/// The request cannot be explained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// The configuration has no such cluster.
    #[error("the proxy-agent's configuration has no virtual cluster {0}")]
    NoCluster(ClusterName),
    /// The configuration of a virtual cluster is invalid.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The operating system provides no random numbers.
    #[error("the operating system has no random bytes for a key")]
    Randomness,
}

impl From<ServicesError> for ExplainError {
    fn from(error: ServicesError) -> Self {
        match error {
            ServicesError::Cluster(error) => Self::Cluster(error),
            ServicesError::Randomness => Self::Randomness,
        }
    }
}

/// The services of an agent whose host is a [`DryRunHost`].
struct Agent {
    services: Services,
    namespaces: Arc<Namespaces>,
    questions: Arc<Mutex<Vec<Question>>>,
}

/// A watch that delivers these changes, and no others. The last one comes first.
struct StaticWatch(Vec<Change>);

/// Default cluster roles for users, which every host has and all virtual clusters share (`bootstrappolicy`).
const SHARED_ROLES: [&str; 4] = ["cluster-admin", "system:basic-user", "system:discovery", "system:public-info-viewer"];

/// Explains a request of `caller` to a virtual cluster. It sends nothing. It must be called within a tokio runtime.
pub async fn explain(
    config: &ProxyAgentConfiguration,
    cluster: &ClusterName,
    caller: &Identity,
    request: Request<Bytes>,
) -> Result<Explanation, ExplainError> {
    let (mut head, body) = request.into_parts();
    caller.write(&mut head.headers);
    let info = match RequestInfo::parse(&head.method, head.uri.path(), head.uri.query()) {
        Ok(info) => info,
        Err(error) => return Ok(Explanation::refused(Vec::new(), Status::from(&error))),
    };
    let dry_run_host = DryRunHost::new(cluster, &info);
    let namespaces = dry_run_host.namespaces();
    let agent = Agent::new(config, dry_run_host)?;
    let clusters = &agent.services.clusters;
    let Some(virtual_cluster) = clusters.get(cluster) else { return Err(ExplainError::NoCluster(cluster.clone())) };
    let (nodes, roles) = (clusters.nodes(), clusters.roles());
    let definitions = Arc::clone(&agent.services.definitions);
    let planned = async {
        let call = authenticate(&agent.services, &virtual_cluster, info, head.headers, None).await?.authorise().await?;
        let body = match call.api.body_use() {
            BodyUse::Mapped => Body::Whole(body),
            BodyUse::Passed => Body::Stream(Mutex::new(None)),
            BodyUse::Ignored => Body::Whole(Bytes::new()),
        };
        let plan = decide(&call, &body).await.plan?;
        let watch = watch_query(&call, &plan).map(|asked| asked.map(|_| ()));
        let hub = watch.or_else(|| feed_list_query(&call, &plan).map(|asked| asked.map(|_| ())));
        Ok((plan, hub))
    };
    let planned = tokio::select! {
        biased;
        () = agent.namespaces.follow(StaticWatch::telling(namespaces)) => unreachable!("namespaces are followed for ever"),
        () = nodes.follow(StaticWatch::nothing()) => unreachable!("nodes are followed for ever"),
        () = roles.follow(StaticWatch::shared_roles()) => unreachable!("roles are followed for ever"),
        () = definitions.follow(StaticWatch::nothing()) => unreachable!("definitions are followed for ever"),
        planned = planned => planned,
    };
    let questions = agent.questions.lock().map(|mut questions| std::mem::take(&mut *questions)).unwrap_or_default();
    Ok(match planned {
        Ok((plan, hub)) => Explanation { questions, outcome: Outcome::Sent(Box::new(Sent::of(*plan, hub).await)) },
        Err::<_, Refusal>(refusal) => Explanation::refused(questions, refusal.into_status()),
    })
}

// === impl Explanation ===

impl Explanation {
    /// Whether the request depends on an object that only a real host has.
    pub fn depends_on_the_host(&self) -> bool {
        self.questions.iter().any(|question| matches!(question, Question::Live { .. }))
    }

    fn refused(questions: Vec<Question>, status: Status) -> Self {
        Self { questions, outcome: Outcome::Refused(Box::new(status)) }
    }
}

// === impl Sent ===

impl Sent {
    async fn of(plan: Plan, hub: Option<Result<(), Bypass>>) -> Self {
        let (head, body) = plan.request.into_parts();
        // Only requests to the server of a pod have a streamed body, and here it is empty.
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Self {
            method: head.method,
            target: head.uri.to_string(),
            headers: head.headers,
            body,
            shown: Shown::of(&plan.transform),
            otherwise: plan.otherwise.map(|other| other.request.uri().to_string()),
            hub,
            is_namespace_creation: plan.after == After::PostCreate,
        }
    }
}

// === impl Shown ===

impl Shown {
    fn of(transform: &ResponseTransform) -> Self {
        match transform {
            ResponseTransform::Verbatim | ResponseTransform::Proxied(_) => Self::Verbatim,
            ResponseTransform::Object { only, .. } => Self::Object(only.as_ref().map(ToString::to_string)),
            ResponseTransform::Review { .. } => Self::Review,
            ResponseTransform::List { filter, .. } => Self::List(Passing::of(*filter)),
            ResponseTransform::Watch { filter, .. } => Self::Watch(Passing::of(*filter)),
        }
    }
}

// === impl Passing ===

impl Passing {
    fn of(filter: Filter) -> Self {
        match filter {
            Filter::Everything => Self::Everything,
            Filter::ByNamespace => Self::InNamespaces,
            Filter::ByName => Self::Namespaces,
            Filter::ByClaim => Self::Claimed,
            Filter::ByNode => Self::OfNodes,
            Filter::ByParent => Self::OfServices,
            Filter::Autoupdated => Self::Autoupdated,
            Filter::Nothing => Self::Nothing,
            Filter::ByRole => Self::Roles,
            Filter::Shared => Self::Shared,
        }
    }
}

// === impl Agent ===

impl Agent {
    fn new(config: &ProxyAgentConfiguration, dry_run_host: DryRunHost) -> Result<Self, ExplainError> {
        let questions = dry_run_host.questions();
        let tasks = Tasks::new();
        let host = answered_by(Arc::new(move |request| dry_run_host.answer(request)), &tasks);
        let services = Services::new(config, host, Watched::fixed(Certificate::new("")), &tasks)?;
        let namespaces = Arc::clone(&services.namespaces);
        Ok(Self { services, namespaces, questions })
    }
}

// === impl StaticWatch ===

impl StaticWatch {
    fn nothing() -> Self {
        Self::telling(Vec::new())
    }

    fn telling(objects: Vec<Change>) -> Self {
        // `next` pops from the end.
        Self([Change::Synced].into_iter().chain(objects).collect())
    }

    fn shared_roles() -> Self {
        let role = |name| {
            let labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
            Change::Applied(json!({"metadata": {"name": name, "labels": labels}, "rules": []}))
        };
        Self::telling(SHARED_ROLES.map(role).into())
    }
}

impl<T: DeserializeOwned + Send + 'static> Following<T> for StaticWatch {
    async fn next(&mut self) -> Change<T> {
        let parsed = |object| serde_json::from_value(object).expect("the objects are written here");
        match self.0.pop() {
            Some(Change::Applied(object)) => Change::Applied(parsed(object)),
            Some(Change::Deleted(object)) => Change::Deleted(parsed(object)),
            Some(Change::Synced) => Change::Synced,
            None => pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
