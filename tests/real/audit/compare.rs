//! Sends the same requests to a virtual cluster and to the API server of the host, and compares what both record.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Credentials, Curl, HostCluster, eventually};
use serde_json::{Value, json};

use super::{Audited, events};

/// The namespace on both sides.
const NAMESPACE: &str = "audit-compare";

/// The time limit for an event, after all responses.
const COMPARED: Duration = Duration::from_secs(3);

/// Who sends a request.
#[derive(Clone, Copy)]
enum Who {
    /// `admin` of `system:masters`, with a certificate.
    Admin,
    /// A service account, with a token.
    Robot,
    /// An invalid token.
    Nobody,
    /// No credential.
    Anonymous,
}

/// A request: method, path, body and headers. `NS` in a path stands for the namespace.
struct Sent {
    who: Who,
    method: &'static str,
    path: &'static str,
    body: Value,
    headers: &'static [&'static str],
}

/// One of the two API servers.
struct Side {
    name: &'static str,
    curl: Curl,
    token: String,
}

pub(super) fn events_are_those_of_kube_apiserver(host: &HostCluster) -> anyhow::Result<()> {
    let audited = Audited::start(host, "audited", ", policyFile: DIR/policy.yaml", |dir| {
        let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n\
                      - {level: None, nonResourceURLs: [\"/livez*\"]}\n- {level: Metadata}\n";
        Ok(std::fs::write(dir.join("policy.yaml"), policy)?)
    })?;
    let Credentials { authority, certificate, key } = Credentials::of(&host.kubectl())?;
    let address = host.api_servers()?.first().context("no API server")?.clone();
    let real = Curl::directly(&address, &authority).with_certificate(&certificate, &key);
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    let mut sides = Vec::new();
    for (name, curl) in [("virtual", audited.curl()?), ("real", real)] {
        let mut side = Side { name, curl, token: String::new() };
        side.send(0, &Sent::new("POST", "/api/v1/namespaces", namespace.clone()))?;
        let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
        let robot = json!({"metadata": {"name": "robot"}}).to_string();
        side.curl.send("POST", &accounts, &robot)?;
        let token = side.curl.send("POST", &format!("{accounts}/robot/token"), "{}")?.json()?;
        token["status"]["token"].as_str().context("no token")?.clone_into(&mut side.token);
        sides.push(side);
    }
    let sent = requests();
    for (number, request) in sent.iter().enumerate() {
        let codes: Vec<_> = sides.iter().map(|side| side.send(number + 1, request)).collect::<Result<_, _>>()?;
        ensure!(codes[0] == codes[1], "{} {}: {codes:?}", request.method, request.path);
    }
    let mut differences = Vec::new();
    for (number, what) in (0..).zip(std::iter::once("namespace").chain(sent.iter().map(|request| request.path))) {
        let compared = eventually(COMPARED, || {
            let of_host = events(&host.dir().join("audit.log"))?;
            let expected = of(&of_host, &format!("real-{number}"), None)?;
            let found = of(&events(&audited.log())?, &format!("virtual-{number}"), Some(&audited))?;
            ensure!(
                found == expected && !found.is_empty(),
                "{number} {what}\nfound    {}\nexpected {}",
                json!(found),
                json!(expected)
            );
            Ok(())
        });
        differences.extend(compared.err().map(|error| format!("{error:?}")));
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    check_host(host, &audited)?;
    check_file(&audited)?;
    host.kubectl().ok(&["delete", "namespace", NAMESPACE, "--wait=false"])?;
    Ok(())
}

/// All requests after the creation of the namespace.
fn requests() -> Vec<Sent> {
    let map = json!({"metadata": {"name": "one"}, "data": {"a": "b"}});
    let old = json!({"metadata": {"name": "one", "resourceVersion": "1"}});
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": NAMESPACE}}});
    let get = |path| Sent::new("GET", path, Value::Null);
    vec![
        Sent::new("POST", "/api/v1/namespaces/NS/configmaps?fieldManager=curl", map.clone()),
        Sent::new("POST", "/api/v1/namespaces/NS/configmaps", map),
        Sent::new("POST", "/api/v1/namespaces/NS/configmaps", json!({"metadata": {"generateName": "one-"}})),
        Sent::new("POST", "/api/v1/namespaces/NS/configmaps", json!({"metadata": {"name": "NOT valid"}})),
        Sent::new("PUT", "/api/v1/namespaces/NS/configmaps/one", old),
        Sent::new("PATCH", "/api/v1/namespaces/NS/configmaps/one", json!({"data": {"a": "c"}})),
        get("/api/v1/namespaces/NS/configmaps/one").with(&["X-Forwarded-For: 192.0.2.7", "X-Real-Ip: 192.0.2.8"]),
        get("/api/v1/namespaces/NS/configmaps/nobody"),
        get("/api/v1/namespaces/NS/configmaps?limit=1&labelSelector=a%3Db"),
        get("/api/v1/namespaces/NS/configmaps?fieldSelector=metadata.name%3Done"),
        get("/api/v1/namespaces/NS/configmaps?watch=1&timeoutSeconds=1"),
        get("/apis/apps/v1/deployments"),
        get("/api/v1/namespaces/NS"),
        get("/api/v1/namespaces/NS/pods/nobody/log"),
        get("/version"),
        get("/api/v1"),
        Sent::new("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review),
        get("/api/v1/namespaces/NS/secrets").by(Who::Robot),
        get("/version").by(Who::Robot),
        get("/api/v1/namespaces/NS/pods").by(Who::Nobody),
        get("/api/v1/namespaces/NS/pods").by(Who::Anonymous),
        get("/version").by(Who::Anonymous),
        get("/api/v1/namespaces/NS/pods").with(&["Impersonate-User: jane", "Impersonate-Group: testers"]),
        get("/api/v1/namespaces/NS/pods").with(&["Impersonate-User: system:serviceaccount:audit-compare:robot"]),
        get("/api/v1/namespaces/NS/pods").by(Who::Robot).with(&["Impersonate-User: jane"]),
        Sent::new("DELETE", "/api/v1/namespaces/NS/configmaps/one", Value::Null),
        Sent::new("DELETE", "/api/v1/namespaces/NS/configmaps/one", Value::Null),
        Sent::new("DELETE", "/api/v1/namespaces/NS/secrets", Value::Null),
    ]
}

/// The events of a request, without what must differ. `audited`: those of the virtual cluster, which also have the stage
/// `RequestReceived`.
fn of(events: &[Value], id: &str, audited: Option<&Audited>) -> anyhow::Result<Vec<Value>> {
    let mut found: Vec<_> = events.iter().filter(|event| event["auditID"] == id).cloned().collect();
    if let Some(audited) = audited {
        for event in &found {
            ensure!(event["annotations"] == json!({"atoll.dev/cluster": audited.cluster}), "{event}");
            let text = event.to_string();
            ensure!(!text.contains("/clusters/") && !text.contains("-audited"), "a name of the host: {event}");
        }
        if found.first().is_some_and(|first| first["stage"] == "RequestReceived") {
            let first = found.remove(0);
            ensure!(first["stageTimestamp"] == first["requestReceivedTimestamp"], "{first}");
            ensure!(first.get("responseStatus").is_none() && first.get("impersonatedUser").is_none(), "{first}");
        } else {
            ensure!(found.iter().all(|event| event["responseStatus"]["code"] == 401), "no first stage: {found:?}");
        }
    }
    for event in &mut found {
        let fields = event.as_object_mut().context("not an object")?;
        for name in ["auditID", "annotations", "requestReceivedTimestamp", "stageTimestamp"] {
            ensure!(fields.remove(name).is_some() || name == "annotations", "{name} is missing in {fields:?}");
        }
        // The agent reviews impersonation in kube-apiserver's legacy mode, and the host in the mode of KEP-5284.
        fields.remove("authenticationMetadata");
        if event.pointer("/responseStatus/message").is_some_and(|message| message.to_string().contains("impersonate")) {
            event["responseStatus"] = json!(event["responseStatus"]["code"]);
        }
        for path in ["/user/uid", "/objectRef/uid", "/responseStatus/details/uid"] {
            if let Some(value) = event.pointer_mut(path) {
                *value = json!("a uid");
            }
        }
        if let Some(Value::Object(extra)) = event.pointer_mut("/user/extra") {
            extra.values_mut().for_each(|value| *value = json!(["a value"]));
        }
    }
    Ok(found)
}

/// The host has the same ID for a request, in its own names.
fn check_host(host: &HostCluster, audited: &Audited) -> anyhow::Result<()> {
    let of_host = events(&host.dir().join("audit.log"))?;
    let same = of_host.iter().find(|event| event["auditID"] == "virtual-1" && event["verb"] == "create");
    let same = same.context("the host does not have the ID of the request")?;
    ensure!(same["objectRef"]["namespace"] == format!("{NAMESPACE}-{}", audited.cluster), "{same}");
    // The client gets the ID, also if the server has chosen it.
    let head = audited.curl()?.with(&["--head"]).get("/version")?.body;
    let id = head.lines().find_map(|line| line.to_lowercase().strip_prefix("audit-id: ").map(str::to_owned));
    let id = id.with_context(|| format!("no ID in {head}"))?;
    eventually(CONDITION_TIMEOUT, || {
        ensure!(events(&audited.log())?.iter().any(|event| event["auditID"] == id.trim()), "no event {id}");
        Ok(())
    })
}

/// Only the user of the process can read the file, and the policy omits health checks.
fn check_file(audited: &Audited) -> anyhow::Result<()> {
    let mode = std::fs::metadata(audited.log())?.permissions().mode() & 0o777;
    ensure!(mode == 0o600, "{mode:o}");
    audited.admin.ok(&["get", "--raw", "/livez/ping"])?;
    audited.admin.ok(&["get", "--raw", "/readyz"])?;
    eventually(CONDITION_TIMEOUT, || {
        let events = events(&audited.log())?;
        let has = |path: &str| events.iter().any(|event| event["requestURI"] == path);
        ensure!(has("/readyz") && !has("/livez/ping"), "the policy is not in force");
        Ok(())
    })
}

// === impl Sent ===

impl Sent {
    fn new(method: &'static str, path: &'static str, body: Value) -> Self {
        Self { who: Who::Admin, method, path, body, headers: &[] }
    }

    fn by(self, who: Who) -> Self {
        Self { who, ..self }
    }

    fn with(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }
}

// === impl Side ===

impl Side {
    /// Sends a request with this number in its ID. Returns the status code.
    fn send(&self, number: usize, sent: &Sent) -> anyhow::Result<u16> {
        let curl = match sent.who {
            Who::Admin => self.curl.clone(),
            Who::Robot => self.curl.clone().with_token(&self.token),
            Who::Nobody => self.curl.clone().with_token("invalid"),
            Who::Anonymous => self.curl.clone().anonymous(),
        };
        let id = format!("Audit-ID: {}-{number}", self.name);
        let options = ["--user-agent", "trial/1", "--header", "Accept: application/json", "--header", &id];
        let mut curl = curl.with(&options);
        for header in sent.headers {
            curl = curl.with(&["--header", header]);
        }
        let body = if sent.body.is_null() { String::new() } else { sent.body.to_string() };
        let media_type = if sent.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        Ok(curl.send_as(sent.method, &sent.path.replace("NS", NAMESPACE), media_type, &body)?.code)
    }
}
