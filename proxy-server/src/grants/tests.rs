use std::path::Path;

use ops::drain::Tasks;
use protocol::{MemberSettings, RefusalReason};

use super::testing::parse;
use super::*;
use crate::registry::Clusters;
use crate::tunnel::{Origin, Tunnel};

/// The grants, and the configuration file with them.
struct World {
    grants: Arc<Grants>,
    registry: Arc<Registry>,
    file: ProxyServerConfiguration,
    tasks: Tasks,
}

fn offers(names: &[&str]) -> Vec<Offer> {
    names.iter().map(|name| Offer::new(name.parse().unwrap(), Mode::Virtual)).collect()
}

async fn tunnel(agent: &str) -> Arc<Tunnel> {
    let (near, far) = tokio::io::duplex(4096);
    let (requests, _connection) = ::tunnel::settings::client().handshake(near).await.unwrap();
    drop(far);
    Tunnel::new(Origin::agent(agent), requests)
}

// === impl World ===

impl World {
    /// Grants `host-1` two clusters with names that begin with `site-`.
    fn new(dir: &Path) -> Self {
        let file = parse(
            dir,
            "clusters:\n- {name: site-file, agents: [other], clientCA: {certificate: c.crt}}\n\
             grants: {directory: added, agents: [{id: host-1, names: ['site-*'], maxClusters: 2}]}\n",
        );
        let registry = Arc::new(Registry::new(Clusters::of(&file)));
        let grants = Grants::open(&file, &registry).unwrap().unwrap();
        let tasks = Tasks::new();
        let (reloads, mut added, config) = (Arc::clone(&registry), grants.added(), file.clone());
        // As `Reload` does.
        tasks.spawn("reload", async move {
            while added.changed().await.is_ok() {
                reloads.reload(Clusters::of(&merge(&config, &added.borrow_and_update())));
            }
        });
        tasks.spawn("grants", Arc::clone(&grants).run());
        Self { grants, registry, file, tasks }
    }

    async fn offer(&self, tunnel: &Arc<Tunnel>, names: &[&str]) -> Vec<(RefusalReason, Vec<ClusterName>)> {
        let offers = offers(names);
        self.grants.admit(&tunnel.agent, &offers).await;
        let refused = self.registry.renew(tunnel, &offers);
        refused.into_iter().map(|refused| (refused.refusal.reason, refused.clusters)).collect()
    }

    fn withdraw(&self, tunnel: &Arc<Tunnel>, name: &str) {
        self.grants.withdraw(&tunnel.agent, [name.parse().unwrap()].iter());
    }

    fn has(&self, name: &str) -> bool {
        self.registry.clusters().get(name).is_some()
    }
}

fn not_granted(names: &[&str]) -> Vec<(RefusalReason, Vec<ClusterName>)> {
    vec![(RefusalReason::NotGranted, names.iter().map(|name| name.parse().unwrap()).collect())]
}

#[tokio::test(start_paused = true)]
async fn an_agent_adds_what_it_is_granted() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    let (ours, other) = (tunnel("host-1").await, tunnel("host-2").await);
    assert_eq!(world.offer(&other, &["site-a"]).await, not_granted(&["site-a"]));
    // `site-file` is in the file, for another agent.
    assert_eq!(
        world.offer(&ours, &["site-a", "elsewhere", "site-file"]).await,
        not_granted(&["elsewhere", "site-file"])
    );
    assert!(world.has("site-a") && !world.has("elsewhere"));
    assert_eq!(world.offer(&ours, &["site-a", "site-b", "site-c"]).await, not_granted(&["site-c"]), "the limit is two");
    let physical = Offer::new("site-d".parse().unwrap(), Mode::Physical);
    world.grants.admit(&ours.agent, &[physical]).await;
    assert!(!world.has("site-d"));

    // After a restart, clients of the cluster get the reason why it does not respond.
    let again = World::new(dir.path());
    let config = with_added(&again.file).unwrap();
    let names: Vec<_> = config.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    assert_eq!(names, ["site-file", "site-a", "site-b"]);
    let ca = config.clusters[1].client_ca.as_ref().unwrap();
    assert!(ca.certificate.starts_with(dir.path()) && ca.certificate.exists() && ca.key.as_ref().unwrap().exists());
    world.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_cluster_is_removed_after_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    let ours = tunnel("host-1").await;
    assert_eq!(world.offer(&ours, &["site-a", "site-b"]).await, []);

    // The agent disconnects, and connects again: this is no withdrawal.
    world.registry.remove(&ours);
    sleep(GRACE_PERIOD * 3).await;
    assert!(world.has("site-a") && world.has("site-b"));
    let ours = tunnel("host-1").await;
    assert_eq!(world.offer(&ours, &["site-a", "site-b"]).await, []);

    // It withdraws both, and offers one of them again.
    for name in ["site-a", "site-b"] {
        world.withdraw(&ours, name);
    }
    assert_eq!(world.offer(&ours, &[]).await, []);
    sleep(GRACE_PERIOD / 2).await;
    assert_eq!(world.offer(&ours, &["site-b"]).await, []);
    sleep(GRACE_PERIOD / 3).await;
    let other = tunnel("host-2").await;
    assert_eq!(world.offer(&other, &["site-a"]).await, not_granted(&["site-a"]), "this does not keep it");
    assert!(world.has("site-a"), "too early");
    sleep(GRACE_PERIOD).await;
    assert!(!world.has("site-a") && world.has("site-b"));
    assert_eq!(world.offer(&ours, &["site-b", "site-c"]).await, [], "there is room for another one");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_a_replica_offers_stays() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    let (one, replica) = (tunnel("host-1").await, tunnel("host-1").await);
    assert_eq!(world.offer(&one, &["site-a"]).await, []);
    assert_eq!(world.offer(&replica, &["site-a"]).await, []);
    world.withdraw(&one, "site-a");
    assert_eq!(world.registry.renew(&one, &[]), []);
    sleep(GRACE_PERIOD * 2).await;
    assert!(world.has("site-a"));
    world.withdraw(&replica, "site-a");
    assert_eq!(world.registry.renew(&replica, &[]), []);
    sleep(GRACE_PERIOD * 2).await;
    assert!(!world.has("site-a"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_describes_its_members_if_the_grant_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    let ours = tunnel("host-1").await;
    assert_eq!(world.offer(&ours, &["site-a", "site-b"]).await, []);
    let with = |settings: bool| {
        let karmada = "karmada: {kubeconfig: k, keptBy: c, clusters: ['*'], url: 'http://p:1'}";
        let agent = format!("{{id: host-1, names: ['site-*'], maxClusters: 2, memberSettings: {settings}}}");
        parse(dir.path(), &format!("{karmada}\ngrants: {{directory: added, agents: [{agent}]}}\n"))
    };
    let regions = |config: &ProxyServerConfiguration| {
        let members = with_added(config).unwrap().karmada.unwrap().members;
        let of = |facts: &MemberFacts| (facts.name.to_string(), facts.region.clone().unwrap());
        members.iter().map(|facts| of(facts)).collect::<Vec<_>>()
    };
    let describe = async |agent: &str, name: &str, region: Option<&str>| {
        let member =
            region.map(|region| MemberSettings { region: Some(region.to_owned()), ..MemberSettings::default() });
        let offer = Offer { member, ..Offer::new(name.parse().unwrap(), Mode::Virtual) };
        world.grants.describe(&agent.parse().unwrap(), &[offer]);
        sleep(PERIOD * 2).await;
    };
    describe("host-1", "site-a", Some("north")).await;
    assert_eq!(regions(&with(true)), [], "the grant in force does not allow it");

    world.grants.exchange(Arc::new(with(true)));
    describe("host-1", "site-a", Some("north")).await;
    assert_eq!(regions(&with(true)), [("site-a".to_owned(), "north".to_owned())]);
    assert_eq!(regions(&with(false)), [], "the operator has the last word");
    describe("host-2", "site-a", Some("south")).await;
    describe("host-1", "site-c", Some("south")).await;
    describe("host-1", "site-b", Some("")).await;
    assert_eq!(regions(&with(true)).len(), 1, "another agent, a cluster that it has not added, invalid settings");
    describe("host-1", "site-a", None).await;
    assert_eq!(regions(&with(true)), []);
    world.tasks.cancel();
}

#[test]
fn what_is_no_longer_granted_is_not_served() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path().join("added"));
    let agent = "host-1".parse().unwrap();
    store.add(&agent, &["site-a".parse().unwrap(), "b".parse().unwrap()], 9).unwrap();
    for (grants, expect) in [
        ("grants: {directory: added, agents: [{id: host-1, names: ['*']}]}", vec!["b", "site-a"]),
        ("grants: {directory: added, agents: [{id: host-1, names: [b]}]}", vec!["b"]),
        ("grants: {directory: added, agents: [{id: host-2, names: ['*']}]}", vec![]),
        ("", vec![]),
    ] {
        let config = with_added(&parse(dir.path(), grants)).unwrap();
        let names: Vec<_> = config.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        assert_eq!(names, expect, "{grants}");
    }
}

#[test]
fn a_cluster_is_gone_when_it_is_missing_twice() {
    let added = |names: &[&str]| -> Added {
        let cluster = || AddedCluster { agent: "host-1".parse().unwrap(), member: None };
        names.iter().map(|name| (name.parse().unwrap(), cluster())).collect()
    };
    let (known, mut absent) = (added(&["a", "b"]), BTreeSet::new());
    assert_eq!(confirmed(added(&["a"]), &known, &mut absent), known, "once");
    assert_eq!(confirmed(added(&["a", "b"]), &known, &mut absent), known, "it is back");
    assert_eq!(confirmed(added(&["a"]), &known, &mut absent), known, "once again");
    assert_eq!(confirmed(added(&["a", "c"]), &known, &mut absent), added(&["a", "c"]), "twice");
}
