//! A granted right can be used immediately, on any API server of the host. A new namespace takes writes immediately. A
//! revoked right ends soon.
//!
//! These tests have a host of their own: a binding of a virtual cluster costs one write for each of its namespaces, and
//! five hundred namespaces would slow down every other test.

use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use atoll_tests::{Curl, HostCluster, Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, CLUSTERS, burst};

/// The time limit until a revoked right has ended.
const REVOKED: Duration = Duration::from_secs(5);
/// The default number of rounds of all users. Without waiting, about one in nine would be refused.
const ROUNDS: usize = 100;
/// The environment variable that overrides it.
const VARIABLE: &str = "ATOLL_RIGHTS_ROUNDS";
/// In one of this many rounds, the user is refused before the grant, and the right is revoked after it. Before a
/// refusal, the agent waits for a second for new rights.
const WHOLE: usize = 9;
/// The number of concurrent users.
const USERS: [&str; 4] = ["ada", "ben", "cleo", "dan"];

const GROUP: &str = "rbac.authorization.k8s.io";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

pub(super) fn is_never_refused() -> anyhow::Result<()> {
    let rounds = match std::env::var(VARIABLE) {
        Ok(text) => text.parse().with_context(|| format!("{VARIABLE}={text} is no number"))?,
        Err(_) => ROUNDS,
    };
    let (host, balancer) = HostCluster::up_balanced()?;
    let site = VirtualSite::on(host, &CLUSTERS)?;
    let before = balancer.forwarded();
    std::thread::scope(|scope| {
        let running = USERS.map(|user| scope.spawn(|| Grant::new(&site, user)?.rounds(rounds / USERS.len())));
        running.into_iter().try_for_each(|user| user.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    // The API servers close a connection after one in fifty requests, and the next connection uses the other one.
    let moves = balancer.forwarded() - before;
    ensure!(
        moves >= rounds / 20,
        "the agent changed the API server only {moves} times, which is not sufficient for this test"
    );
    burst::takes_writes_at_once(&site)
}

/// A right that is granted and revoked.
struct Grant {
    user: &'static str,
    admin: Curl,
    holder: Curl,
}

// === impl Grant ===

impl Grant {
    fn new(site: &VirtualSite, user: &'static str) -> anyhow::Result<Self> {
        let holder = site.curl_like(&site.user(BEIJING, user)?, BEIJING, Route::Proxy)?;
        Ok(Self { user, admin: site.curl(BEIJING, Route::Path)?, holder })
    }

    fn rounds(&self, count: usize) -> anyhow::Result<()> {
        (0..count).try_for_each(|number| self.round(number).with_context(|| format!("{}, round {number}", self.user)))
    }

    /// Grants a new right and uses it. In some rounds, it also checks the refusal before and the revocation after.
    fn round(&self, number: usize) -> anyhow::Result<()> {
        let name = format!("{}-{number}", self.user);
        // The agent authorizes reads of nodes with a review. The host authorizes reads of ConfigMaps.
        let (kind, path) = match number % 2 {
            0 => ("nodes", format!("/api/v1/nodes/{name}")),
            _ => ("configmaps", format!("/api/v1/namespaces/default/configmaps/{name}")),
        };
        let whole = number.is_multiple_of(WHOLE);
        if whole {
            self.is_refused(&path)?;
        }
        let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": [kind], "resourceNames": [name]}]);
        self.make("clusterroles", &json!({"kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}))?;
        let role = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": name});
        let subjects = json!([{"apiGroup": GROUP, "kind": "User", "name": self.user}]);
        let binding = json!({
            "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": role, "subjects": subjects,
        });
        self.make("clusterrolebindings", &binding)?;
        // With the right, the response is 404.
        self.holder.get(&path)?.refused(404, "NotFound", &name).context("the first request")?;
        if whole {
            let gone = self.admin.send("DELETE", &format!("{RBAC}/clusterrolebindings/{name}"), "")?;
            ensure!(gone.code == 200, "{gone:?}");
            let revoked = SystemTime::now();
            eventually(REVOKED, || self.is_refused(&path))?;
            // The last check may begin before the limit and end after it.
            ensure!(revoked.elapsed()? < REVOKED, "revoked after {:?}", revoked.elapsed());
        }
        Ok(())
    }

    fn make(&self, kind: &str, object: &Value) -> anyhow::Result<()> {
        let mut object = object.clone();
        object["apiVersion"] = format!("{GROUP}/v1").into();
        let made = self.admin.send("POST", &format!("{RBAC}/{kind}"), &object.to_string())?;
        ensure!(made.code == 201, "{made:?}");
        Ok(())
    }

    fn is_refused(&self, path: &str) -> anyhow::Result<()> {
        self.holder.get(path)?.refused(403, "Forbidden", "cannot get resource").map(drop)
    }
}
