//! One log line for each request, written when its response has ended.
//!
//! An event at level `info` with the target [`ACCESS`], so that `RUST_LOG=info,access=off` disables it. A line contains
//! the path, but neither the query, the headers nor bodies, which may contain credentials or commands. The user is that
//! of the certificate; for bearer tokens, the agent names the user in its response.
//!
//! [`Entry`] is its content. The body of the response ([`logged`](super::logged)) ends it, with the metrics.

use http::{HeaderMap, Request, StatusCode};
use kube_wire::{RequestInfo, Target};
use ops::log::ACCESS;
use protocol::{ClusterName, Fault, identity};
use tokio::time::Instant;
use tracing::{Level, enabled, info};

use super::body::BodyError;
use super::refusal::Refusal;

/// The content of the line, which is written when this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    began: Instant,
    verb: String,
    /// `deployments.apps/scale`, or the path if it is no resource.
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
    cluster: Option<ClusterName>,
    user: Option<String>,
    acting_as: Option<String>,
    pub(super) status: u16,
    pub(super) bytes: u64,
    fault: Option<Fault>,
    pub(super) end: ResponseEnd,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseEnd {
    /// The client got all of it.
    Whole,
    /// The client disconnected or reset the request. This is how most watches end.
    Left,
    /// The response ended early.
    Broken,
}

// === impl Entry ===

impl Entry {
    /// Begins the entry of a request. `None` if the log level excludes the line.
    pub(super) fn begin<B>(request: &Request<B>, began: Instant) -> Option<Box<Self>> {
        enabled!(target: ACCESS, Level::INFO).then(|| Box::new(Self::new(request, began)))
    }

    pub(super) fn new<B>(request: &Request<B>, began: Instant) -> Self {
        Self {
            began,
            verb: request.method().as_str().to_lowercase(),
            resource: request.uri().path().to_owned(),
            namespace: None,
            name: None,
            cluster: None,
            user: None,
            acting_as: None,
            status: 0,
            bytes: 0,
            fault: None,
            end: ResponseEnd::Left,
        }
    }

    /// Adds the cluster and what the request is for, unless it cannot be parsed.
    pub(super) fn routed(&mut self, cluster: &ClusterName, info: Option<&RequestInfo<'_>>) {
        self.cluster = Some(cluster.clone());
        let Some(info) = info else { return };
        info.verb().clone_into(&mut self.verb);
        match info.target() {
            Target::Resource(request) => {
                self.resource = request.group_resource().to_string();
                if let Some(subresource) = request.subresource() {
                    self.resource.push('/');
                    self.resource.push_str(subresource);
                }
                self.namespace = request.namespace().map(str::to_owned);
                self.name = request.name().map(str::to_owned);
            }
            Target::NonResource(request) => request.path().clone_into(&mut self.resource),
        }
    }

    /// Adds the user of a certificate.
    pub(super) fn identified(&mut self, user: &str) {
        self.user = Some(user.to_owned());
    }

    /// Adds what the agent's response says about the user, and whose fault a failure is.
    pub(super) fn responded(&mut self, headers: &HeaderMap) {
        if let Some(caller) = identity::caller(headers) {
            match &self.user {
                None => self.user = Some(caller),
                Some(user) if *user != caller => self.acting_as = Some(caller),
                Some(_) => {}
            }
        }
        self.fault = Fault::read(headers);
    }

    /// The request was not forwarded, or there was no response.
    pub(super) fn refused(&mut self, refusal: &Refusal) {
        self.fault = Some(refusal.fault());
    }

    /// Adds the status of the response.
    pub(super) fn answered(&mut self, status: StatusCode) {
        self.status = status.as_u16();
    }

    /// The switched protocol has ended.
    pub(super) fn ended_upgrade(&mut self, traffic: &tunnel::pipe::Traffic, is_whole: bool) {
        self.bytes = traffic.from_tunnel;
        self.end = if is_whole { ResponseEnd::Whole } else { ResponseEnd::Broken };
    }

    pub(super) fn broke(&mut self, error: &BodyError) {
        self.end = ResponseEnd::Broken;
        self.fault = Some(error.fault());
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // Without a fault from the agent, the status decides.
        let by_status = match self.status {
            400..500 => Some(Fault::Client),
            500.. => Some(Fault::Host),
            _ => None,
        };
        info!(
            target: ACCESS,
            user = self.user.as_deref(),
            acting_as = self.acting_as.as_deref(),
            cluster = self.cluster.as_ref().map(ClusterName::as_str),
            verb = self.verb,
            resource = self.resource,
            namespace = self.namespace.as_deref(),
            name = self.name.as_deref(),
            status = self.status,
            bytes = self.bytes,
            duration_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            fault = self.fault.or(by_status).map(Fault::word),
            end = self.end.word(),
        );
    }
}

// === impl ResponseEnd ===

impl ResponseEnd {
    fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Left => "left",
            Self::Broken => "broken",
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use protocol::identity::name_caller;

    use super::*;

    fn entry(method: &Method, uri: &str) -> Entry {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let mut entry = Entry::new(&request, Instant::now());
        let info = RequestInfo::parse(method, request.uri().path(), request.uri().query());
        entry.routed(&"ke-beijing".parse().unwrap(), info.ok().as_ref());
        entry
    }

    #[test]
    fn a_line_contains_the_path_but_not_the_query() {
        let exec = entry(&Method::POST, "/api/v1/namespaces/shop/pods/web/exec?command=secret");
        assert_eq!((&*exec.verb, &*exec.resource), ("create", "pods/exec"));
        assert_eq!((exec.namespace.as_deref(), exec.name.as_deref()), (Some("shop"), Some("web")));
        let watch = entry(&Method::GET, "/apis/apps/v1/deployments?watch=1");
        assert_eq!((&*watch.verb, &*watch.resource), ("watch", "deployments.apps"));
        let version = entry(&Method::GET, "/version?token=secret");
        assert_eq!((&*version.verb, &*version.resource), ("get", "/version"));
        for entry in [exec, watch, version] {
            assert!(!format!("{entry:?}").contains("secret"));
        }
    }

    #[test]
    fn the_agent_names_the_user_of_a_token_and_the_impersonated_user() {
        let mut headers = HeaderMap::new();
        name_caller(&mut headers, "jane");
        let mut bearer = entry(&Method::GET, "/api");
        bearer.responded(&headers);
        assert_eq!((bearer.user.as_deref(), &bearer.acting_as), (Some("jane"), &None));
        let mut certified = entry(&Method::GET, "/api");
        certified.identified("jane");
        certified.responded(&headers);
        assert_eq!(certified.acting_as, None);
        let mut impersonating = entry(&Method::GET, "/api");
        impersonating.identified("admin");
        impersonating.responded(&headers);
        assert_eq!((impersonating.user.as_deref(), impersonating.acting_as.as_deref()), (Some("admin"), Some("jane")));
    }
}
