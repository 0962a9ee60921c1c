//! Counts the own requests of one user in kube-apiserver's audit log.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};

use serde::Deserialize;

use crate::site::Host;

/// The user of the agent on the host.
const AGENT: &str = "system:serviceaccount:atoll-system:proxy-agent";

/// The requests of a user during a phase.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Requests {
    /// By `VERB RESOURCE`.
    pub(super) by_kind: BTreeMap<String, u64>,
    /// The number of those that may change an object.
    pub(super) writes: u64,
    /// Responses with a status of 400 or higher, by `STATUS VERB RESOURCE`.
    pub(super) refused: BTreeMap<String, u64>,
}

/// The keys that this program uses (`audit.k8s.io/v1` `Event`).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    verb: String,
    #[serde(default, rename = "requestURI")]
    request_uri: String,
    user: User,
    /// A client of a virtual cluster, for whom the agent sent the request.
    impersonated_user: Option<User>,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    api_group: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

// === impl Requests ===

impl Requests {
    /// The end of the audit log so far, for [`Requests::of_agent`].
    pub(super) fn position(host: &Host) -> anyhow::Result<u64> {
        Ok(std::fs::metadata(host.audit_log())?.len())
    }

    /// The agent's own requests since this position of the audit log.
    pub(super) fn of_agent(host: &Host, since: u64) -> anyhow::Result<Self> {
        let mut file = std::fs::File::open(host.audit_log())?;
        file.seek(SeekFrom::Start(since))?;
        let mut log = Vec::new();
        file.read_to_end(&mut log)?;
        Ok(Self::of(AGENT, &String::from_utf8_lossy(&log)))
    }

    /// Counts the requests in these lines of the log. Incomplete lines, requests of other users, and requests that the
    /// user sent for somebody else do not count.
    pub(super) fn of(user: &str, log: &str) -> Self {
        let mut requests = Self::default();
        // Most lines are those of other users. They need not be parsed.
        for line in log.lines().filter(|line| line.contains(user)) {
            let Ok(event) = serde_json::from_str::<Event>(line) else { continue };
            if event.user.username == user && event.impersonated_user.is_none() {
                requests.add(&event);
            }
        }
        requests
    }

    pub(super) fn total(&self) -> u64 {
        self.by_kind.values().sum()
    }

    fn add(&mut self, event: &Event) {
        // A watch has two lines: one when it begins, and one when it ends.
        let counted = if event.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
        let code = event.response_status.as_ref().map_or(0, |status| status.code);
        if event.stage != counted && code < 400 {
            return;
        }
        let kind = event.kind();
        if code >= 400 {
            *self.refused.entry(format!("{code} {kind}")).or_default() += 1;
        }
        let dry_run = event.request_uri.contains("dryRun=All");
        let review = kind.contains("reviews");
        if !matches!(event.verb.as_str(), "get" | "list" | "watch") && code < 400 && !dry_run && !review {
            self.writes += 1;
        }
        *self.by_kind.entry(if dry_run { format!("{kind} (dry run)") } else { kind }).or_default() += 1;
    }
}

// === impl Event ===

impl Event {
    /// For example `get pods/log` or `create deployments.apps`; `get /openapi/v3` for a path that is not a resource.
    fn kind(&self) -> String {
        let verb = &self.verb;
        let Some(ObjectRef { resource, subresource, api_group }) = &self.object_ref else {
            let path = self.request_uri.split('?').next().unwrap_or_default();
            return format!("{verb} {}", if path.starts_with("/openapi") { "/openapi" } else { "another path" });
        };
        let group = if api_group.is_empty() { String::new() } else { format!(".{api_group}") };
        let subresource = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
        format!("{verb} {resource}{group}{subresource}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(user: &str, stage: &str, verb: &str, uri: &str, resource: &str, code: u16) -> String {
        let reference = match resource {
            "" => String::new(),
            _ => format!(r#""objectRef":{{"resource":"{resource}","apiGroup":"apps"}},"#),
        };
        let user = format!(r#""user":{{"username":"{user}","groups":["g"]}}"#);
        format!(
            r#"{{"stage":"{stage}","verb":"{verb}","requestURI":"{uri}",{user},{reference}"responseStatus":{{"code":{code}}}}}"#
        ) + "\n"
    }

    #[test]
    fn requests_of_one_user_are_counted() {
        let log = [
            line("agent", "ResponseStarted", "watch", "/x?watch=1", "deployments", 200),
            line("agent", "ResponseComplete", "watch", "/x?watch=1", "deployments", 200),
            line("agent", "ResponseComplete", "create", "/x", "deployments", 201),
            line("agent", "ResponseComplete", "create", "/x", "deployments", 409),
            line("agent", "ResponseComplete", "patch", "/x?dryRun=All", "deployments", 200),
            line("agent", "ResponseComplete", "get", "/openapi/v3?hash=1", "", 200),
            line("agent-2", "ResponseComplete", "create", "/x", "deployments", 201),
            line("agent", "ResponseComplete", "create", "/x", "deployments", 201)
                .replace(r#""user""#, r#""impersonatedUser":{"username":"vc:a:admin"},"user""#),
            r#"{"stage":"ResponseComplete","verb":"create","user":{"username":"agent"#.to_owned(),
        ];
        let requests = Requests::of("agent", &log.concat());
        let expected = [
            ("watch deployments.apps", 1),
            ("create deployments.apps", 2),
            ("patch deployments.apps (dry run)", 1),
            ("get /openapi", 1),
        ];
        assert_eq!(requests.by_kind, expected.map(|(kind, count)| (kind.to_owned(), count)).into());
        assert_eq!((requests.total(), requests.writes), (5, 1));
        assert_eq!(requests.refused, [("409 create deployments.apps".to_owned(), 1)].into());
    }
}
