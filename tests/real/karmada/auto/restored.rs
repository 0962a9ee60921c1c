//! The host of members is lost. They are restored on another host, and stay the same members (docs/backup-and-restore.md).

use anyhow::{Context as _, ensure};
use atoll_tests::{HostCluster, VirtualSite, eventually, site};

use super::{ALL, CLUSTERS, MARKER, NORTH, RESYNCED, SOUTH, World, text};

pub(in crate::karmada) fn members_stay_after_a_restore(shared: &VirtualSite) -> anyhow::Result<()> {
    let other = HostCluster::up(1)?;
    let mut world = World::start(shared.host())?;
    world.say(&ALL)?;
    let kubectl = world.karmada.kubectl().clone();
    let of = |what: &str| kubectl.ok(&["get", "cluster", NORTH, &format!("-o=jsonpath={what}")]);
    let token = || kubectl.ok(&["get", "secret", NORTH, "-n=karmada-cluster", "-o=jsonpath={.data.token}"]);
    for name in [NORTH, SOUTH] {
        world.karmada.ready(name)?;
    }
    kubectl.ok(&["create", "namespace", "auto"])?;
    kubectl.ok_with(&["apply", "-f", "-"], MARKER)?;
    world.marked(&[NORTH, SOUTH], "first")?;
    let before = (of("{.spec.id} {.metadata.uid}")?, token()?);

    // The backup has no Secrets: Karmada's tokens would not be valid on another host.
    let on = |host: &HostCluster, words: &[&str]| -> anyhow::Result<String> {
        let kubeconfig = host.kubectl().kubeconfig().to_owned();
        site::atoll(&[&["clusters"], words, &["--host-kubeconfig", text(&kubeconfig)?]].concat())
    };
    for (name, _) in CLUSTERS {
        let file = world.site.file(&format!("{name}.export.yaml"));
        on(world.host, &["export", name, "-o", text(&file)?])?;
    }
    world.agent.take().context("no agent runs")?.kill()?;
    for (name, _) in CLUSTERS {
        let file = world.site.file(&format!("{name}.export.yaml"));
        on(&other, &["adopt", name, "-f", text(&file)?])?;
        on(world.host, &["remove", name, "--yes"])?;
    }
    world.host = &other;
    world.start_agent()?;
    eventually(RESYNCED, || {
        ensure!(token()? != before.1, "Karmada still has the token of the former host");
        Ok(())
    })?;
    for name in [NORTH, SOUTH] {
        world.karmada.ready(name)?;
    }
    ensure!(of("{.spec.id} {.metadata.uid}")? == before.0, "it is another member: {}", of("{.spec.id}")?);
    let id = world.member(NORTH)?.ok(&["get", "namespace", "kube-system", "-o=jsonpath={.metadata.uid}"])?;
    ensure!(before.0.starts_with(&id), "the identity is {id}");

    // Karmada continues with its work.
    world.mark("restored")?;
    world.marked(&[NORTH, SOUTH], "restored")?;
    kubectl.ok(&["delete", "namespace", "auto"])?;
    world.leaves_with_its_entry()
}
