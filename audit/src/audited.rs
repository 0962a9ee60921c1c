//! The events of one request.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use kube_wire::{RequestInfo, Status};
use protocol::audit::{self, ObjectFacts, UserInfo};
use protocol::audit_id::AUDIT_ID;

use crate::auditor::Auditor;
use crate::event::{Event, MicroTime, ObjectReference, ResponseStatus};
use crate::policy::{Attributes, Decision, Stage};
use crate::source_ips::source_ips;

/// A longer ID of a client is not used. kube-apiserver has no limit.
const MAX_ID: usize = 256;

/// The maximum length of a user agent, and what replaces the rest (`pkg/audit/request.go` in apiserver).
const MAX_USER_AGENT: usize = 1024;
const TRUNCATED: &str = "...TRUNCATED";

/// The maximum length of the URI and of the name of the object in an event, in bytes. A client can send a quarter of a megabyte,
/// and events wait in memory. kube-apiserver has no limit.
const MAX_FIELD: usize = 8 * 1024;

// The fields of an event that may be shortened.
const URI: &str = "requestURI";
const USER: &str = "user";
const IMPERSONATED: &str = "impersonatedUser";
const OBJECT: &str = "objectRef";
const NAME: &str = "objectRef.name";
const STATUS: &str = "responseStatus";

/// The head of a request as it has arrived, with the names of the virtual cluster.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path and the query.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// What the request is for. `None` if it cannot be parsed.
    pub info: Option<&'a RequestInfo<'a>>,
    /// The address of the client.
    pub remote: Option<IpAddr>,
}

/// A request that is recorded. Its last event is recorded when this is dropped.
///
/// Only the agent knows the user of a token, and the policy depends on the user. So all events of a request are recorded when
/// its response begins, or later. Their times are those of the stages.
#[derive(Debug)]
pub struct Audited {
    auditor: Arc<Auditor>,
    id: HeaderValue,
    uri: String,
    /// The path, decoded.
    path: String,
    verb: Cow<'static, str>,
    is_long_running: bool,
    user: Option<UserInfo>,
    impersonated: Option<UserInfo>,
    source_ips: Vec<IpAddr>,
    user_agent: String,
    object: Option<ObjectReference>,
    /// What only the body of the request says about the object.
    object_facts: Option<ObjectFacts>,
    status: Option<ResponseStatus>,
    /// The fields that are not complete.
    truncated: BTreeSet<&'static str>,
    received: SystemTime,
    /// `None` until the response begins.
    decision: Option<Decision>,
    is_complete: bool,
}

// === impl Audited ===

impl Audited {
    /// Begins with the head of a request.
    pub fn begin(auditor: Arc<Auditor>, head: Received<'_>) -> Box<Self> {
        let Received { method, uri, headers, info, remote } = head;
        let mut truncated = BTreeSet::new();
        let mut object = info.and_then(RequestInfo::resource).map(ObjectReference::from);
        if object.as_mut().is_some_and(|object| audit::truncate(&mut object.name, MAX_FIELD)) {
            truncated.insert(NAME);
        }
        let whole = uri.path_and_query().map_or("/", |target| target.as_str());
        let uri_text = audit::prefix(whole, MAX_FIELD);
        if uri_text.len() < whole.len() {
            truncated.insert(URI);
        }
        let path = match info.map(RequestInfo::target) {
            Some(kube_wire::Target::NonResource(request)) => request.path(),
            _ => uri.path(),
        };
        Box::new(Self {
            auditor,
            id: id(headers),
            uri: uri_text.to_owned(),
            path: path.to_owned(),
            verb: info.map_or_else(|| method.as_str().to_ascii_lowercase().into(), |info| info.verb().into()),
            is_long_running: info.is_some_and(RequestInfo::is_long_running),
            user: None,
            impersonated: None,
            source_ips: source_ips(headers, remote),
            user_agent: user_agent(headers),
            object,
            object_facts: None,
            status: None,
            truncated,
            received: SystemTime::now(),
            decision: None,
            is_complete: false,
        })
    }

    /// Makes the agent and the host use the same ID, and asks the agent for facts.
    pub fn announce(&self, headers: &mut HeaderMap) {
        headers.insert(AUDIT_ID, self.id.clone());
        audit::request(headers);
    }

    /// Gives the client the ID of its request.
    pub fn identify(&self, headers: &mut HeaderMap) {
        headers.insert(AUDIT_ID, self.id.clone());
    }

    /// Adds the user that a client certificate, or a token of the issuer, proves.
    pub fn identified(&mut self, user: UserInfo) {
        self.user = Some(user);
    }

    /// Adds the facts that the agent's response has. `caller`: the only fact of an agent of an earlier version. The agent
    /// does not change who a certificate, or a token of the issuer, has proven.
    pub fn responded(&mut self, headers: &HeaderMap, caller: Option<String>) {
        let mut facts = vec![(audit::IMPERSONATED, IMPERSONATED), (audit::OBJECT, OBJECT), (audit::STATUS, STATUS)];
        if self.user.is_none() {
            facts.push((audit::USER, USER));
            let only_name = || caller.map(|username| UserInfo { username, ..UserInfo::default() });
            self.user = audit::read(headers, &audit::USER).or_else(only_name);
        }
        self.impersonated = audit::read(headers, &audit::IMPERSONATED);
        self.object_facts = audit::read(headers, &audit::OBJECT);
        let status = audit::read_json(headers, &audit::STATUS);
        let status = status.and_then(|json| Status::from_json(json.as_bytes()).ok());
        self.status = status.map(ResponseStatus::from);
        let truncated = facts.into_iter().filter(|(name, _)| audit::is_truncated(headers, name));
        self.truncated.extend(truncated.map(|(_, field)| field));
    }

    /// The request was refused with this status.
    pub fn refused(&mut self, status: &Status) {
        self.status = Some(status.clone().into());
    }

    /// The head of the response is sent.
    pub fn answered(&mut self, status: StatusCode) {
        self.status.get_or_insert_default().code = status.as_u16();
        self.decide();
    }

    /// Decides what is recorded, and records the first stages.
    fn decide(&mut self) {
        let object = self.object.as_ref().map(ObjectReference::attributes);
        let user = self.user.as_ref();
        let decision = self.auditor.decide(&Attributes {
            user: user.map_or("", |user| &user.username),
            groups: user.map_or(&[], |user| &user.groups),
            verb: &self.verb,
            path: &self.path,
            object,
        });
        self.decision = Some(decision);
        let is_unauthenticated = user.is_none() && self.status.as_ref().is_some_and(|status| status.code == 401);
        if is_unauthenticated {
            // This is the only stage (`WithFailedAuthenticationAudit` in `pkg/endpoints/filters/authn_audit.go`).
            self.record(decision, Stage::ResponseStarted);
            self.is_complete = true;
            return;
        }
        self.record(decision, Stage::RequestReceived);
        if let Some(facts) = self.object_facts.take() {
            let object = self.object.get_or_insert_default();
            object.complete(facts);
            if audit::truncate(&mut object.name, MAX_FIELD) {
                self.truncated.insert(NAME);
            }
        }
        if self.is_long_running {
            self.record(decision, Stage::ResponseStarted);
        }
    }

    fn record(&self, decision: Decision, stage: Stage) {
        if !decision.records(stage) {
            return;
        }
        let (anonymous, is_received) = (UserInfo::default(), stage == Stage::RequestReceived);
        let user = self.user.as_ref().unwrap_or(&anonymous);
        let mut event = Event::new(self.auditor.cluster(), self.id.to_str().unwrap_or_default(), user, self.received);
        event.stage = name(stage);
        event.request_uri = &self.uri;
        event.verb = &self.verb;
        event.source_ips = &self.source_ips;
        event.user_agent = &self.user_agent;
        event.object_ref = self.object.as_ref();
        if !is_received {
            event.impersonated_user = self.impersonated.as_ref();
            event.response_status = self.status.as_ref();
            event.stage_timestamp = MicroTime(SystemTime::now());
        }
        // The others are not in this event.
        let is_here = |field: &&&str| !is_received || [URI, USER, NAME].contains(field);
        for field in self.truncated.iter().filter(is_here) {
            event.mark_truncated(field);
        }
        self.auditor.record(event.line());
    }
}

impl Drop for Audited {
    fn drop(&mut self) {
        if self.decision.is_none() {
            self.status.get_or_insert_with(ResponseStatus::closed_early);
            self.decide();
        }
        if let Some(decision) = self.decision.filter(|_| !self.is_complete) {
            self.record(decision, Stage::ResponseComplete);
        }
    }
}

/// The ID that the client has chosen, or a new one: a random UUID (RFC 9562 section 5.4).
fn id(headers: &HeaderMap) -> HeaderValue {
    let chosen = headers.get(AUDIT_ID).filter(|id| !id.is_empty() && id.len() <= MAX_ID && id.to_str().is_ok());
    chosen.cloned().unwrap_or_else(|| {
        let random = fastrand::u128(..) & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
        let digits = format!("{random:032x}");
        let id = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-");
        HeaderValue::try_from(id).expect("digits and hyphens are visible ASCII")
    })
}

fn user_agent(headers: &HeaderMap) -> String {
    let Some(value) = headers.get(header::USER_AGENT) else { return String::new() };
    let text = String::from_utf8_lossy(value.as_bytes());
    if text.len() <= MAX_USER_AGENT {
        return text.into_owned();
    }
    format!("{}{TRUNCATED}", audit::prefix(&text, MAX_USER_AGENT))
}

fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::RequestReceived => "RequestReceived",
        Stage::ResponseStarted => "ResponseStarted",
        Stage::ResponseComplete => "ResponseComplete",
        Stage::Panic => "Panic",
    }
}

#[cfg(test)]
mod tests;
