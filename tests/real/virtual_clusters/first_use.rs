//! What was granted may be used at once, whichever API server of the host is asked; what was revoked may not for long.

use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use atoll_tests::{Curl, HostCluster, Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, CLUSTERS};

/// A right that was taken away is gone after this.
const REVOKED: Duration = Duration::from_secs(5);
/// Rounds of all users together, if the environment does not say. One in nine would be refused if nothing were waited for.
const ROUNDS: usize = 100;
/// The variable that says.
const VARIABLE: &str = "ATOLL_RIGHTS_ROUNDS";
/// One in so many is refused before and revoked after: the agent thinks twice, for a second, before it refuses anybody
/// who may just have been granted something.
const WHOLE: usize = 9;
/// Users who are at it at the same time.
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
    let before = balancer.taken();
    std::thread::scope(|scope| {
        let running = USERS.map(|user| scope.spawn(|| Grant::new(&site, user)?.rounds(rounds / USERS.len())));
        running.into_iter().try_for_each(|user| user.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    // One request in fifty ends its connection, and the next one goes to the other API server.
    let moves = balancer.taken() - before;
    ensure!(moves >= rounds / 20, "the agent moved {moves} times only: this proves nothing about two API servers");
    Ok(())
}

/// A right that comes and goes.
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

    /// Granted and used; now and then refused before, and revoked after. Nobody has held the right before.
    fn round(&self, number: usize) -> anyhow::Result<()> {
        let name = format!("{}-{number}", self.user);
        // Decided by a review that the agent asks for, and by the host as it answers.
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
        // Who may look finds that there is no such thing.
        self.holder.get(&path)?.refused(404, "NotFound", &name).context("the first use")?;
        if whole {
            let gone = self.admin.send("DELETE", &format!("{RBAC}/clusterrolebindings/{name}"), "")?;
            ensure!(gone.code == 200, "{gone:?}");
            let revoked = SystemTime::now();
            eventually(REVOKED, || self.is_refused(&path))?;
            // The last look may begin in time and end late.
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
