//! A site loses its link for longer than Karmada tolerates, without failover and with it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Karmada, Kubectl, Nodes, Site, VirtualSite, eventually, pause, site};
use serde_json::Value;

use super::SETTLED;

const AGENT: &str = "site-away";

/// The member whose site is away, and the one to which workloads may move: the host itself.
const AWAY: &str = "away";
const HOME: &str = "away-home";

/// The time limit until Karmada notices that a member is away or back. It checks every ten seconds, and believes a change after
/// thirty.
const NOTICED: Duration = Duration::from_secs(150);

/// Two Deployments. One tolerates that its member is away, and the other one moves after five seconds.
const MANIFEST: &str = r"
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: stays, namespace: outage}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: stays}]
  placement:
    clusterAffinity: {clusterNames: [away]}
    clusterTolerations:
    - {key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute}
    - {key: cluster.karmada.io/unreachable, operator: Exists, effect: NoExecute}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: moves, namespace: outage}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: moves}]
  placement:
    clusterAffinities:
    - {affinityName: edge, clusterNames: [away]}
    - {affinityName: spare, clusterNames: [away-home]}
    clusterTolerations:
    - {key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
    - {key: cluster.karmada.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: stays, namespace: outage}
spec:
  selector: {matchLabels: {app: stays}}
  template:
    metadata: {labels: {app: stays}}
    spec: {containers: [{name: web, image: 'example.com/web:1'}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: moves, namespace: outage}
spec:
  selector: {matchLabels: {app: moves}}
  template:
    metadata: {labels: {app: moves}}
    spec: {containers: [{name: web, image: 'example.com/web:1'}]}
";

/// Failover: Karmada gives a member that is not ready a taint that moves its workloads.
const FAILOVER: &str = r#"
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: outage}
spec:
  targetClusters: {clusterNames: [away]}
  addOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: ["True"]}]
  removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ["True"]}]
  taints: [{key: cluster.karmada.io/not-ready, effect: NoExecute}]
"#;

/// The site, and the control plane.
struct World<'a> {
    host: Kubectl,
    cluster: &'a HostCluster,
    karmada: Karmada,
    site: Site,
    agent: Option<Process>,
    member: Kubectl,
}

pub(super) fn a_site_is_away_for_long(shared: &VirtualSite) -> anyhow::Result<()> {
    let mut world = World::start(shared.host())?;
    let karmada = world.karmada.kubectl().clone();
    karmada.ok(&["create", "namespace", "outage"])?;
    karmada.ok_with(&["apply", "-f", "-"], MANIFEST)?;
    world.runs("outage-away", "stays", "example.com/web:1")?;
    world.runs("outage-away", "moves", "example.com/web:1")?;
    let (stays, moves) = (world.uid("stays")?, world.uid("moves")?);

    // Without failover, nothing moves and nothing is deleted. The site keeps working, and catches up.
    world.leave()?;
    karmada.ok(&["set", "image", "deployment/moves", "web=example.com/web:2", "-n=outage"])?;
    world.works_alone("stays")?;
    pause(absence());
    ensure!(
        (world.uid("stays")?, world.uid("moves")?) == (stays.clone(), moves.clone()),
        "a Deployment was created again"
    );
    world.come_back()?;
    world.runs("outage-away", "moves", "example.com/web:2")?;
    ensure!((world.uid("stays")?, world.uid("moves")?) == (stays.clone(), moves), "a Deployment was created again");

    // With failover, a workload that does not tolerate it moves. The other one stays, and catches up.
    karmada.ok_with(&["apply", "-f", "-"], FAILOVER)?;
    world.leave()?;
    world.runs("outage", "moves", "example.com/web:2")?;
    karmada.ok(&["set", "image", "deployment/stays", "web=example.com/web:2", "-n=outage"])?;
    world.works_alone("stays")?;
    pause(absence());
    // The site is away, so nobody can have deleted it there.
    world.runs("outage-away", "moves", "example.com/web:2")?;
    world.come_back()?;
    world.runs("outage-away", "stays", "example.com/web:2")?;
    ensure!(world.uid("stays")? == stays, "a Deployment was created again");
    eventually(NOTICED, || {
        let left = world.host.ok(&["get", "deployments", "-n=outage-away", "-o=name"])?;
        ensure!(left.trim() == "deployment.apps/stays", "{left}");
        Ok(())
    })?;
    world.runs("outage", "moves", "example.com/web:2")?;

    karmada.ok_with(&["delete", "-f", "-"], FAILOVER)?;
    karmada.ok_with(&["delete", "-f", "-"], MANIFEST)?;
    karmada.ok(&["delete", "namespace", "outage"])?;
    world.end()
}

// === impl World ===

impl<'a> World<'a> {
    fn start(cluster: &'a HostCluster) -> anyhow::Result<Self> {
        let (karmada, host) = (Karmada::beside(cluster), cluster.kubectl());
        let site = Site::start(&[&site::entry(AWAY, AGENT)], &[AWAY])?;
        let agent = Some(start_agent(&site, cluster, 1)?);
        let member = site.administrator(AWAY)?;
        eventually(SETTLED, || member.ok(&["get", "namespaces"]).map(drop))?;
        karmada.join(AWAY, member.kubeconfig())?;
        karmada.join(HOME, host.kubeconfig())?;
        karmada.ready(AWAY)?;
        karmada.ready(HOME)?;
        Ok(Self { host, cluster, karmada, site, agent, member })
    }

    fn end(self) -> anyhow::Result<()> {
        self.karmada.unjoin(AWAY, self.member.kubeconfig(), AWAY)?;
        self.karmada.unjoin(HOME, self.host.kubeconfig(), "host")
    }

    /// The link is lost, and Karmada notices.
    fn leave(&mut self) -> anyhow::Result<()> {
        self.agent.take().context("the site is away already")?.kill()?;
        eventually(NOTICED, || {
            let shown = r#"-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}"#;
            let ready = self.karmada.kubectl().ok(&["get", "cluster", AWAY, shown])?;
            ensure!(ready != "True", "still ready");
            let effects = "-o=jsonpath={.spec.taints[*].effect}";
            let effects = self.karmada.kubectl().ok(&["get", "cluster", AWAY, effects])?;
            ensure!(effects.contains("NoSchedule"), "the taints have the effects {effects:?}");
            Ok(())
        })
    }

    fn come_back(&mut self) -> anyhow::Result<()> {
        let number = std::fs::read_dir(self.site.file(""))?.count();
        self.agent = Some(start_agent(&self.site, self.cluster, number)?);
        self.karmada.ready(AWAY).map(drop)
    }

    /// A Deployment on the host has this image and a ready pod.
    fn runs(&self, namespace: &str, name: &str, image: &str) -> anyhow::Result<()> {
        let namespace = format!("-n={namespace}");
        eventually(NOTICED, || {
            let found: Value =
                serde_json::from_str(&self.host.ok(&["get", "deployment", name, &namespace, "-o=json"])?)?;
            let (spec, status) = (&found["spec"]["template"]["spec"]["containers"][0]["image"], &found["status"]);
            let is_current = status["observedGeneration"] == found["metadata"]["generation"];
            ensure!(
                spec == image && is_current && status["updatedReplicas"] == 1 && status["readyReplicas"] == 1,
                "{found}"
            );
            Ok(())
        })
    }

    /// While the cloud is away, the site replaces a pod that is lost.
    fn works_alone(&self, name: &str) -> anyhow::Result<()> {
        let selector = format!("app={name}");
        let pods = ["get", "pods", "-n=outage-away", "-l", &selector, "-o=jsonpath={.items[*].metadata.name}"];
        let before = self.host.ok(&pods)?;
        self.host.ok(&["delete", "pod", "-n=outage-away", before.trim(), "--wait=false"])?;
        eventually(SETTLED, || {
            let now = self.host.ok(&pods)?;
            ensure!(!now.is_empty() && !now.contains(before.trim()), "{now}");
            self.host
                .ok(&["wait", "pod", "-n=outage-away", "-l", &selector, "--for=condition=Ready", "--timeout=5s"])
                .map(drop)
        })
    }

    /// Of a Deployment of the site.
    fn uid(&self, name: &str) -> anyhow::Result<String> {
        self.host.ok(&["get", "deployment", name, "-n=outage-away", "-o=jsonpath={.metadata.uid}"])
    }
}

fn start_agent(site: &Site, host: &HostCluster, number: usize) -> anyhow::Result<Process> {
    let body = format!(
        "host: {{kubeconfig: {}}}\nvirtualClusters: [{}]",
        host.agent_kubeconfig().display(),
        Nodes::Location("beijing").entry(AWAY)
    );
    let mut agent = site.agent_as(AGENT, &format!("{AGENT}-{number}"), &body)?;
    agent.printed("the virtual cluster is provisioned")?;
    Ok(agent)
}

/// The time for which the site stays away after Karmada has noticed: `ATOLL_AGENT_OFF_SECONDS`, or twenty seconds.
fn absence() -> Duration {
    let seconds = std::env::var("ATOLL_AGENT_OFF_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(20))
}
