//! Two members without changes: they stay ready, and Karmada writes nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::traffic::bytes_of_connections_to;
use atoll_tests::{HostCluster, Kubectl, VirtualSite, eventually, pause};
use serde_json::Value;

use super::pair::Pair;
use super::{CLUSTERS, SETTLED};

/// The time before, in which both must stay ready. In the first minute, Karmada's queues become empty.
const SETTLING: Duration = Duration::from_secs(75);
/// The time in which Karmada may not write.
const IDLE: Duration = Duration::from_secs(120);
/// The time between two checks.
const EVERY: Duration = Duration::from_secs(5);
/// The maximum number of bytes that an idle member takes a day: the budget of 5 MB, and a tenth for what differs between two runs.
const MAX_A_DAY: u64 = 5_500_000;
/// The maximum number of log lines about an error from one place in the source code. A start causes a few.
const REPEATED: usize = 3;

/// The use case of the edge-cluster proposal, with cluster-scoped rights, and pods with resource requests.
const MANIFEST: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: edge}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx, namespace: edge}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: nginx}
  - {apiVersion: v1, kind: Service, name: nginx}
  placement: {clusterAffinity: {clusterNames: [ke-beijing, ke-hangzhou]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: nginx, namespace: edge}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  overrideRules:
  - targetCluster: {clusterNames: [ke-hangzhou]}
    overriders: {imageOverrider: [{component: Tag, operator: replace, value: "1.27"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, namespace: edge}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{name: nginx, image: 'nginx:1.25', resources: {requests: {cpu: 100m}}}]}
---
apiVersion: v1
kind: Service
metadata: {name: nginx, namespace: edge}
spec: {selector: {app: nginx}, ports: [{port: 80}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: readers}
spec:
  resourceSelectors:
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: readers}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, name: readers}
  placement: {clusterAffinity: {clusterNames: [ke-beijing, ke-hangzhou]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: readers}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: readers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tom}]
"#;

/// It uses a separate host and a separate Karmada, because other tests write.
pub(super) fn two_members_stay_ready_and_quiet() -> anyhow::Result<()> {
    let site = VirtualSite::compressing(HostCluster::up_with_karmada()?, &CLUSTERS)?;
    let pair = Pair::join(&site)?;
    pair.karmada.kubectl().ok_with(&["apply", "-f", "-"], MANIFEST)?;
    let described = || CLUSTERS.iter().try_for_each(|(member, _)| is_described(pair.karmada.kubectl(), member));
    eventually(SETTLED, described)?;

    let logs = Logs::from_now(&site)?;
    stays_ready(&pair, SETTLING)?;
    let audit = Tail::from_now(site.host().dir().join("audit.log"))?;
    let before = bytes_of_connections_to(site.site().ports.agents)?;
    let log = site.site().server.log().len();
    stays_ready(&pair, IDLE)?;
    let bytes = bytes_of_connections_to(site.site().ports.agents)? - before;
    let requests = site.site().server.log()[log..].lines().filter(|line| line.contains(" access: ")).count();
    saves_bytes(bytes, requests)?;
    described().context("in the end")?;
    no_write(&audit.read()?)?;
    logs.say_nothing_again_and_again()
}

/// What the tunnel has carried for both members, with TLS. A slow network is assumed.
#[expect(clippy::print_stdout, reason = "docs/performance.md has the figure")]
fn saves_bytes(bytes: u64, requests: usize) -> anyhow::Result<()> {
    let a_day = bytes / CLUSTERS.len() as u64 * 24 * 60 * 60 / IDLE.as_secs();
    println!("idle member of Karmada: {a_day} bytes a day; both: {bytes} bytes for {requests} requests in {IDLE:?}");
    ensure!(a_day < MAX_A_DAY, "{a_day} bytes a day");
    Ok(())
}

/// Karmada reports two nodes, with their resources and those that pods use.
fn is_described(karmada: &Kubectl, member: &str) -> anyhow::Result<()> {
    let cluster: Value = serde_json::from_str(&karmada.ok(&["get", "cluster", member, "-o", "json"])?)?;
    for wanted in ["Ready", "CompleteAPIEnablements"] {
        let conditions = cluster["status"]["conditions"].as_array().context("no conditions")?;
        let met = conditions.iter().any(|it| it["type"] == wanted && it["status"] == "True");
        ensure!(met, "{member} is not {wanted}: {conditions:?}");
    }
    let (nodes, resources) = (&cluster["status"]["nodeSummary"], &cluster["status"]["resourceSummary"]);
    ensure!(nodes["totalNum"] == 2 && nodes["readyNum"] == 2, "nodes of {member}: {nodes}");
    // tests/kube/kwok.yaml: 64 CPUs and 256 GiB in each node; and two pods. Pods of the other member do not count.
    let (has, given) = (&resources["allocatable"], &resources["allocated"]);
    ensure!(has["cpu"] == "128" && has["memory"] == "128Gi" && has["pods"] == "2k", "{member} has {has}");
    ensure!(given["cpu"] == "200m" && given["pods"] == "2", "{member} has allocated {given}");
    Ok(())
}

/// Both members are ready at each check, and their conditions do not change.
fn stays_ready(pair: &Pair, time: Duration) -> anyhow::Result<()> {
    let shown = "-o=jsonpath={range .items[*]}{.metadata.name}: \
                 {range .status.conditions[*]}{.type} {.status} {.lastTransitionTime} {end}{end}";
    let look = || pair.karmada.kubectl().ok(&["get", "clusters", shown]);
    let first = look()?;
    for _ in 0..time.as_secs() / EVERY.as_secs() {
        pause(EVERY);
        let now = look()?;
        ensure!(now == first, "the members were {first}and are {now}");
    }
    Ok(())
}

/// The agent sends all requests of Karmada to the host, as itself or as an impersonated user. Reviews are POST requests
/// too, but write nothing.
pub(super) fn no_write(audit: &str) -> anyhow::Result<()> {
    let mut asked = 0;
    for line in audit.lines() {
        let event: Value = serde_json::from_str(line).with_context(|| format!("no audit event: {line}"))?;
        if event["user"]["username"] != "system:serviceaccount:atoll-system:proxy-agent" {
            continue;
        }
        asked += 1;
        let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
        let reads = matches!(event["verb"].as_str(), Some("get" | "list" | "watch"));
        ensure!(reads || resource.ends_with("reviews"), "a write: {line}");
    }
    // Karmada reads the health, the version and the APIs of each member every ten seconds.
    ensure!(asked > 50, "Karmada asked {asked} times only");
    Ok(())
}

/// Reads the lines that are appended to a file.
pub(super) struct Tail {
    file: PathBuf,
    from: u64,
}

/// The logs of Karmada's components.
struct Logs(Vec<Tail>);

// === impl Tail ===

impl Tail {
    pub(super) fn from_now(file: PathBuf) -> anyhow::Result<Self> {
        let from = std::fs::metadata(&file).with_context(|| file.display().to_string())?.len();
        Ok(Self { file, from })
    }

    /// Returns complete lines. The last line may be incomplete.
    pub(super) fn read(&self) -> anyhow::Result<String> {
        let mut file = File::open(&self.file)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        Ok(text)
    }
}

// === impl Logs ===

impl Logs {
    fn from_now(site: &VirtualSite) -> anyhow::Result<Self> {
        let names = ["controller-manager", "scheduler", "aggregated-apiserver", "webhook"];
        let tail = |name| Tail::from_now(site.host().dir().join(format!("logs/karmada-{name}.log")));
        Ok(Self(names.into_iter().map(tail).collect::<anyhow::Result<_>>()?))
    }

    /// Parses the head of a klog line: `E1121 18:00:00.000000 1 file.go:1] `.
    fn say_nothing_again_and_again(&self) -> anyhow::Result<()> {
        for tail in &self.0 {
            let text = tail.read()?;
            let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for line in text.lines().filter(|line| line.starts_with('E')) {
                let place = line.split(']').next().and_then(|head| head.split_whitespace().last());
                places.entry(place.unwrap_or_default()).or_default().push(line);
            }
            let repeated: Vec<_> = places.values().filter(|lines| lines.len() > REPEATED).collect();
            ensure!(repeated.is_empty(), "{}: {repeated:#?}", tail.file.display());
        }
        Ok(())
    }
}
