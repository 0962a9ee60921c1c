//! Virtual clusters that the proxy-server makes members of Karmada and removes, also with karmadactl.

pub(super) mod many;
pub(super) mod replicas;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Karmada, Kubectl, Nodes, Site, VirtualSite, eventually, paths, pause, site};
use serde_json::Value;

use super::SETTLED;

const AGENT: &str = "site-auto";
/// The virtual clusters, and the locations of their nodes.
const NORTH: &str = "auto-north";
const SOUTH: &str = "auto-south";
const CLUSTERS: [(&str, &str); 2] = [(NORTH, "beijing"), (SOUTH, "hangzhou")];

/// The time limit until a changed file has an effect in Karmada. The proxy-server reads it every five seconds.
const FOLLOWED: Duration = Duration::from_secs(30);
/// The time limit for a full reconciliation, which happens at least every 75 seconds.
const RESYNCED: Duration = Duration::from_secs(100);
/// The time limit until Karmada has removed its objects from a member, and the host has deleted their namespace.
const GONE: Duration = Duration::from_secs(240);

const MARKER: &str = r"
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: marker, namespace: auto}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: marker}]
  placement: {clusterAffinity: {clusterNames: [auto-north, auto-south]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: marker, namespace: auto}
data: {text: first}
";

/// A separate proxy-server and agent, for the shared host and the shared Karmada.
struct World<'a> {
    host: &'a HostCluster,
    karmada: Karmada,
    site: Site,
    agent: Option<Process>,
    server_file: PathBuf,
    /// The configuration without section `karmada`.
    plain: String,
    kubeconfig: PathBuf,
}

/// Section `karmada` of the configuration.
struct Section<'a> {
    clusters: &'a str,
    host: &'a str,
    /// The port of the endpoints, if Karmada connects without a proxy.
    endpoint: Option<u16>,
    label: &'a str,
}

const ALL: Section<'static> = Section { clusters: "auto-*", host: "127.0.0.1", endpoint: None, label: "one" };

pub(super) fn members_join_and_stay_current_by_themselves(shared: &VirtualSite) -> anyhow::Result<()> {
    let mut world = World::start(shared.host())?;
    world.say(&ALL)?;
    let (north, south) = (world.karmada.ready(NORTH)?, world.karmada.ready(SOUTH)?);
    ensure!(north["spec"]["id"] != south["spec"]["id"], "both have the same ID: {}", north["spec"]);
    for (cluster, name) in [(&north, NORTH), (&south, SOUTH)] {
        let id = world.member(name)?.ok(&["get", "namespace", "kube-system", "-o=jsonpath={.metadata.uid}"])?;
        ensure!(cluster["spec"]["id"] == *id, "{name}: {}", cluster["spec"]);
        ensure!(cluster["status"]["nodeSummary"]["totalNum"] == 2, "{name}: {}", cluster["status"]["nodeSummary"]);
    }
    let spec = &north["spec"];
    ensure!(spec["region"] == "north" && spec["zones"] == serde_json::json!(["one", "two"]), "{spec}");
    ensure!(spec["proxyHeader"] == serde_json::json!({"X-Site": "cloud"}), "{spec}");
    let shown = site::atoll(&["status", "--admin", &format!("http://127.0.0.1:{}", world.site.ports.admin)])?;
    ensure!(shown.contains("joined"), "{shown}");

    // The manifests of `atoll kubeconfig --karmada` equal the existing objects.
    let kubectl = world.karmada.kubectl().clone();
    let printed = site::atoll(&["kubeconfig", NORTH, "--server-config", text(&world.server_file)?, "--karmada"])?;
    kubectl.ok_with(&["diff", "--server-side", "--field-manager=hand", "-f", "-"], &printed)?;

    kubectl.ok(&["create", "namespace", "auto"])?;
    kubectl.ok_with(&["apply", "-f", "-"], MARKER)?;
    world.marked(&[NORTH, SOUTH], "first")?;

    world.changes_are_followed()?;
    world.absence_is_outlived()?;

    kubectl.ok(&["delete", "namespace", "auto"])?;
    world.leaves_with_its_entry()
}

pub(super) fn what_karmadactl_joined_is_taken_over_and_left_to_it(shared: &VirtualSite) -> anyhow::Result<()> {
    let mut world = World::start(shared.host())?;
    let kubectl = world.karmada.kubectl().clone();
    let administrator = world.member(NORTH)?;
    // One cluster has already joined, and the name of the other one is in use.
    world.karmada.join(NORTH, administrator.kubeconfig())?;
    let joined = world.karmada.ready(NORTH)?;
    let stranger = format!(
        "{{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {{name: {SOUTH}}}, \
         spec: {{syncMode: Push, id: another, apiEndpoint: 'https://192.0.2.1:6443'}}}}"
    );
    kubectl.ok_with(&["create", "-f", "-"], &stranger)?;
    world.say(&ALL)?;
    eventually(FOLLOWED, || {
        let cluster: Value = serde_json::from_str(&kubectl.ok(&["get", "cluster", NORTH, "-o=json"])?)?;
        ensure!(cluster["metadata"]["labels"]["atoll.dev/kept-by"] == "trials", "{}", cluster["metadata"]);
        ensure!(cluster["metadata"]["uid"] == joined["metadata"]["uid"], "it was created again");
        ensure!(cluster["spec"]["region"] == "north", "{}", cluster["spec"]);
        Ok(())
    })?;
    world.karmada.ready(NORTH)?;
    eventually(FOLLOWED, || {
        let events = kubectl.ok(&["get", "events", "-n=default", "--field-selector=reason=AtollMembershipRefused"])?;
        ensure!(events.contains(SOUTH) && events.contains("another cluster"), "{events}");
        Ok(())
    })?;
    let id = kubectl.ok(&["get", "cluster", SOUTH, "-o=jsonpath={.spec.id} {.metadata.labels}"])?;
    ensure!(id == "another ", "the other Cluster was changed: {id}");

    // Without the section, all objects stay, and karmadactl can remove the members.
    world.write(&world.plain)?;
    eventually(FOLLOWED, || {
        let shown = site::atoll(&["status", "--admin", &format!("http://127.0.0.1:{}", world.site.ports.admin)])?;
        ensure!(!shown.contains("MEMBER"), "{shown}");
        Ok(())
    })?;
    world.karmada.unjoin(NORTH, administrator.kubeconfig(), NORTH)?;
    world.is_left(NORTH)?;
    kubectl.ok(&["delete", "cluster", SOUTH, "--timeout=60s"])?;
    world.host_is_cleared()
}

// === impl World ===

impl<'a> World<'a> {
    fn start(host: &'a HostCluster) -> anyhow::Result<Self> {
        let mut world = Self::without_agent(host)?;
        world.start_agent()?;
        Ok(world)
    }

    fn without_agent(host: &'a HostCluster) -> anyhow::Result<Self> {
        let entries = CLUSTERS.map(|(name, _)| entry(name));
        let site = Site::start(&entries.each_ref().map(String::as_str), &CLUSTERS.map(|(name, _)| name))?;
        let karmada = Karmada::beside(host);
        let server_file = site.file("server.yaml");
        let plain = std::fs::read_to_string(&server_file)?;
        let kubeconfig = account(&karmada, &site)?;
        Ok(Self { host, karmada, site, agent: None, server_file, plain, kubeconfig })
    }

    fn start_agent(&mut self) -> anyhow::Result<()> {
        let mut body = format!("host: {{kubeconfig: {}}}\nvirtualClusters:\n", self.host.agent_kubeconfig().display());
        for (name, location) in CLUSTERS {
            writeln!(body, "- {}", Nodes::Location(location).entry(name))?;
        }
        let mut agent = self.site.agent(AGENT, &body)?;
        agent.printed("tunnel established")?;
        self.agent = Some(agent);
        Ok(())
    }

    /// kubectl as administrator of the virtual cluster.
    fn member(&self, name: &str) -> anyhow::Result<Kubectl> {
        let file = self.site.file(&format!("{name}.kubeconfig"));
        // Use a configuration that names the cluster, because that of the proxy-server can be another one.
        let config = self.site.file("minting.yaml");
        std::fs::write(&config, &self.plain)?;
        let words = ["kubeconfig", name, "--admin", "--server-config", text(&config)?, "-o", text(&file)?, "--force"];
        site::atoll(&words)?;
        Ok(Kubectl::new(file))
    }

    fn say(&self, section: &Section<'_>) -> anyhow::Result<()> {
        self.write(&format!("{}{}", self.plain, section.yaml(self)))
    }

    fn write(&self, yaml: &str) -> anyhow::Result<()> {
        Ok(std::fs::write(&self.server_file, yaml)?)
    }

    fn marked(&self, members: &[&str], wanted: &str) -> anyhow::Result<()> {
        for name in members {
            let member = self.member(name)?;
            eventually(SETTLED, || {
                let seen = member.ok(&["get", "configmap", "marker", "-n=auto", "-o=jsonpath={.data.text}"])?;
                ensure!(seen == wanted, "{name} has {seen:?}, not {wanted:?}");
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The Cluster, without the fields that depend on the route to the members.
    fn marked_on_host(&self, members: &[&str], wanted: &str) -> anyhow::Result<()> {
        for name in members {
            eventually(SETTLED, || {
                let words = ["get", "configmap", "marker", &format!("-n=auto-{name}"), "-o=jsonpath={.data.text}"];
                let seen = self.host.kubectl().ok(&words)?;
                ensure!(seen == wanted, "{name} has {seen:?}, not {wanted:?}");
                Ok(())
            })?;
        }
        Ok(())
    }

    fn mark(&self, wanted: &str) -> anyhow::Result<()> {
        let patch = format!(r#"{{"data": {{"text": "{wanted}"}}}}"#);
        self.karmada.kubectl().ok(&["patch", "configmap", "marker", "-n=auto", "--type=merge", "-p", &patch])?;
        Ok(())
    }

    /// Changes the proxy, labels and the CA in the configuration. Other labels of the Cluster stay.
    fn changes_are_followed(&self) -> anyhow::Result<()> {
        let kubectl = self.karmada.kubectl();
        kubectl.ok(&["label", "cluster", NORTH, "theirs=kept"])?;
        let taint = r#"[{"op": "add", "path": "/spec/taints", "value": [{"key": "theirs", "effect": "NoSchedule"}]}]"#;
        kubectl.ok(&["patch", "cluster", NORTH, "--type=json", "-p", taint])?;
        self.say(&Section { host: "localhost", label: "two", ..ALL })?;
        let proxy = format!("http://localhost:{}", self.site.ports.proxy);
        eventually(FOLLOWED, || {
            let cluster: Value = serde_json::from_str(&kubectl.ok(&["get", "cluster", NORTH, "-o=json"])?)?;
            let labels = &cluster["metadata"]["labels"];
            ensure!(cluster["spec"]["proxyURL"] == *proxy && labels["ours"] == "two", "{}", cluster["spec"]);
            ensure!(labels["theirs"] == "kept" && cluster["spec"]["taints"][0]["key"] == "theirs", "{cluster}");
            Ok(())
        })?;
        self.mark("moved")?;
        self.marked(&[NORTH, SOUTH], "moved")?;

        let bundle = "-o=jsonpath={.data.caBundle}";
        let before = kubectl.ok(&["get", "secret", NORTH, "-n=karmada-cluster", bundle])?;
        let other = self.site.file("other");
        site::atoll(&["certs", "init", text(&other)?])?;
        for name in ["serving-ca.key", "serving-ca.crt"] {
            std::fs::copy(other.join(name), self.site.file(name))?;
        }
        eventually(FOLLOWED, || {
            let now = kubectl.ok(&["get", "secret", NORTH, "-n=karmada-cluster", bundle])?;
            ensure!(now != before, "the CA has not changed");
            Ok(())
        })?;
        self.mark("rotated")?;
        self.marked(&[NORTH, SOUTH], "rotated")?;
        self.karmada.ready(NORTH)?;
        Ok(())
    }

    /// An unreachable cluster stays a member. Changes on both sides in the meantime converge.
    fn absence_is_outlived(&mut self) -> anyhow::Result<()> {
        let kubectl = self.karmada.kubectl().clone();
        let cluster = |what: &str| kubectl.ok(&["get", "cluster", NORTH, &format!("-o=jsonpath={what}")]);
        let uid = cluster("{.metadata.uid}")?;
        self.agent.take().context("no agent runs")?.kill()?;
        let ready = r#"{.status.conditions[?(@.type=="Ready")].status}"#;
        eventually(Duration::from_secs(90), || {
            ensure!(cluster(ready)? == "False", "still ready");
            Ok(())
        })?;
        pause(absence());
        self.mark("missed")?;
        // Karmada's token is invalid when the cluster is reachable again. The new token has the same text, because
        // tokens of this kind contain no date.
        let (token, namespace) = (format!("karmada-{NORTH}"), format!("-n=karmada-cluster-{NORTH}"));
        let host = self.host.kubectl();
        host.ok(&["delete", "secret", &token, &namespace])?;
        ensure!(cluster("{.metadata.uid}")? == uid, "the Cluster was created again");
        self.start_agent()?;
        eventually(RESYNCED, || host.ok(&["get", "secret", &token, &namespace]).map(drop))?;
        self.karmada.ready(NORTH)?;
        self.karmada.ready(SOUTH)?;
        ensure!(cluster("{.metadata.uid}")? == uid, "the Cluster was created again");
        self.marked(&[NORTH, SOUTH], "missed")
    }

    /// Removes one member from `clusters`, and the other one from the list of members.
    fn leaves_with_its_entry(&mut self) -> anyhow::Result<()> {
        let (north, south) = (self.member(NORTH)?, self.member(SOUTH)?);
        let without: String =
            self.plain.lines().filter(|line| !line.contains(SOUTH)).flat_map(|line| [line, "\n"]).collect();
        self.write(&format!("{without}{}", Section { host: "localhost", ..ALL }.yaml(self)))?;
        self.is_left(SOUTH)?;
        eventually(FOLLOWED, || {
            let refused = south.fails(&["get", "namespaces"])?;
            ensure!(refused.contains("is not a cluster of this proxy-server"), "{refused}");
            Ok(())
        })?;
        self.karmada.ready(NORTH)?;
        self.write(&format!("{without}{}", Section { clusters: "none-*", ..ALL }.yaml(self)))?;
        self.is_left(NORTH)?;
        north.ok(&["get", "namespaces"])?;
        self.host_is_cleared()
    }

    /// Karmada and the member have no more objects of the membership. All other objects exist.
    fn is_left(&self, name: &str) -> anyhow::Result<()> {
        self.is_left_within(name, GONE)
    }

    fn is_left_within(&self, name: &str, limit: Duration) -> anyhow::Result<()> {
        let (kubectl, host) = (self.karmada.kubectl(), self.host.kubectl());
        eventually(limit, || {
            let left = kubectl.ok(&["get", "cluster", name, "--ignore-not-found", "-o=name"])?;
            ensure!(left.is_empty(), "{name} is still a member");
            let secrets = [name, &format!("{name}-impersonator")];
            let words =
                ["get", "secrets", secrets[0], secrets[1], "-n=karmada-cluster", "--ignore-not-found", "-o=name"];
            let left = kubectl.ok(&words)?;
            ensure!(left.is_empty(), "left in Karmada: {left}");
            let left =
                host.ok(&["get", "namespace", &format!("karmada-cluster-{name}"), "--ignore-not-found", "-o=name"])?;
            ensure!(left.is_empty(), "left on the host: {left}");
            let roles = host.ok(&["get", "clusterroles", "-o=name"])?;
            ensure!(!roles.contains(&format!("vc:{name}:karmada")), "roles of {name} still exist");
            Ok(())
        })?;
        let label = format!("atoll.dev/virtual-cluster={name}");
        let stays = host.ok(&["get", "namespaces", "-l", &label, "-o=name"])?;
        ensure!(stays.contains(&format!("namespace/default-{name}\n")), "{stays}");
        Ok(())
    }

    /// Removes the virtual clusters from the host, after their agent has ended.
    fn host_is_cleared(&mut self) -> anyhow::Result<()> {
        self.agent.take().context("no agent runs")?.kill()?;
        let kubeconfig = self.host.kubectl().kubeconfig().to_owned();
        let there = ["--host-kubeconfig", text(&kubeconfig)?];
        for (name, _) in CLUSTERS {
            let listed = site::atoll(&[&["clusters", "list", name], there.as_slice()].concat())?;
            for namespace in [&format!("default-{name}"), &format!("kube-system-{name}"), &format!("atoll-root-{name}")]
            {
                ensure!(listed.contains(namespace), "{namespace} is not in {listed}");
            }
            site::atoll(&[&["clusters", "remove", name, "--yes"], there.as_slice()].concat())?;
            let all = self.host.kubectl().ok(&["get", "namespaces,clusterroles", "-o=name"])?;
            ensure!(!all.contains(name), "left on the host: {all}");
        }
        Ok(())
    }
}

// === impl Section ===

impl Section<'_> {
    fn yaml(&self, world: &World<'_>) -> String {
        let Self { clusters, host, endpoint, label } = self;
        let members = if clusters.starts_with("none") {
            String::new()
        } else {
            format!("  members: [{{name: {NORTH}, region: north, zones: [one, two], labels: {{ours: {label}}}}}]\n")
        };
        let way = match endpoint {
            Some(port) => format!("  through: endpoint\n  url: https://{host}:{port}\n"),
            None => format!("  url: http://{host}:{}\n  proxyHeader: {{X-Site: cloud}}\n", world.site.ports.proxy),
        };
        format!(
            "karmada:\n  kubeconfig: {}\n  keptBy: trials\n  clusters: ['{clusters}']\n{way}{members}",
            world.kubeconfig.display(),
        )
    }
}

/// The time for which the agent stays stopped after Karmada has noticed: `ATOLL_AGENT_OFF_SECONDS`, or zero.
fn absence() -> Duration {
    let seconds = std::env::var("ATOLL_AGENT_OFF_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

/// A kubeconfig for Karmada with only the rights that the documentation lists for the proxy-server.
fn account(karmada: &Karmada, site: &Site) -> anyhow::Result<PathBuf> {
    let kubectl = karmada.kubectl();
    let rights = paths::workspace().join("configs/kubernetes/server/karmada-rbac.yaml");
    kubectl.ok(&["apply", "--server-side", "-f", text(&rights)?])?;
    let token = kubectl.ok(&["create", "token", "atoll-proxy-server", "-n=karmada-system", "--duration=1h"])?;
    let file = site.file("karmada.kubeconfig");
    std::fs::copy(kubectl.kubeconfig(), &file)?;
    let own = Kubectl::new(file.clone());
    own.ok(&["config", "set-credentials", "proxy-server", &format!("--token={token}")])?;
    own.ok(&["config", "set-context", "--current", "--user=proxy-server"])?;
    Ok(file)
}

fn entry(name: &str) -> String {
    site::entry(name, AGENT)
}

fn text(path: &std::path::Path) -> anyhow::Result<&str> {
    path.to_str().context("temporary directories have UTF-8 names")
}
