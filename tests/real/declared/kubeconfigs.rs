//! The agent stores kubeconfigs in Secrets of the host.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use atoll_tests::{Kubectl, eventually, site};

use super::world::{AGENT, IN_FORCE, World};

const CLUSTER: &str = "k-beijing";
const SECRET: &str = "k-beijing-kubeconfig";
/// A cluster whose Secret has a name that is taken.
const OTHER: &str = "k-hangzhou";
const FOREIGN: &str = "k-hangzhou-kubeconfig";

pub(super) fn kubeconfigs_are_stored_and_renewed() -> anyhow::Result<()> {
    let world = World::granted("virtualClusters: []\nkubeconfigNamespace: atoll-system")?;
    let host = world.kubectl();
    world
        .apply(CLUSTER, "{nodeSelector: {location: beijing}, kubeconfig: {user: jane, groups: ['system:masters']}}")?;
    host.ok(&["wait", "virtualcluster", CLUSTER, "--for=condition=KubeconfigIssued", "--timeout=60s"])?;
    let reference = host.ok(&["get", "virtualcluster", CLUSTER, "-o=jsonpath={.status.kubeconfigSecret}"])?;
    ensure!(reference == format!(r#"{{"name":"{SECRET}","namespace":"atoll-system"}}"#), "{reference}");
    let first = stored(&world)?;
    let jane = client(&world, &first)?;
    ensure!(user(&jane)? == "jane");
    let nodes = jane.ok(&["get", "nodes", "-o", "name"])?;
    ensure!(nodes.lines().count() == 2 && nodes.contains("node/beijing-1"), "{nodes}");

    // What belongs to others stays.
    host.ok(&["create", "secret", "generic", FOREIGN, "-n", "atoll-system", "--from-literal=value=mine"])?;
    world.apply(OTHER, "{nodeSelector: {location: hangzhou}, kubeconfig: {user: jane}}")?;
    host.ok(&[
        "wait",
        "virtualcluster",
        OTHER,
        "--for=jsonpath={.status.conditions[?(@.type==\"KubeconfigIssued\")].reason}=NameConflict",
        "--timeout=60s",
    ])?;
    let mine =
        host.ok(&["get", "secret", FOREIGN, "-n", "atoll-system", "-o=go-template={{.data.value | base64decode}}"])?;
    ensure!(mine == "mine", "{mine}");
    host.ok(&["delete", "secret", FOREIGN, "-n", "atoll-system"])?;
    host.ok(&["wait", "virtualcluster", OTHER, "--for=condition=KubeconfigIssued", "--timeout=180s"])?;

    // The certificate is valid for a minute.
    let second = until_replaced(&world, &first)?;
    ensure!(user(&client(&world, &second)?)? == "jane");
    host.ok(&["delete", "secret", SECRET, "-n", "atoll-system"])?;
    let third = until_replaced(&world, &second)?;
    ensure!(user(&client(&world, &third)?)? == "jane");

    world.apply(CLUSTER, "{nodeSelector: {location: beijing}, kubeconfig: {user: john}}")?;
    let john = eventually(IN_FORCE, || {
        let john = client(&world, &stored(&world)?)?;
        ensure!(user(&john)? == "john");
        Ok(john)
    })?;
    let refused = john.run(&["get", "nodes"])?;
    ensure!(refused.stderr.contains(r#"nodes is forbidden: User "john" cannot list resource"#), "{refused:?}");

    let other =
        host.ok(&["get", "secret", FOREIGN, "-n", "atoll-system", "-o=go-template={{.data.value | base64decode}}"])?;

    // Kubernetes deletes the Secret with its owner.
    host.ok(&["delete", "virtualcluster", CLUSTER, "--timeout=60s"])?;
    eventually(IN_FORCE, || {
        let left = host.ok(&["get", "secrets", "-n", "atoll-system", "-l", "atoll.dev/kubeconfig", "-o", "name"])?;
        ensure!(left == format!("secret/{FOREIGN}\n"), "{left}");
        Ok(())
    })?;

    // A thief of the agent's key may have asked for it.
    let other = client(&world, &other)?;
    ensure!(user(&other)? == "jane");
    let config = world.site.file("server.yaml");
    let config = config.to_str().context("temporary directories have UTF-8 names")?;
    site::atoll(&["revoke", "agent", AGENT, "--server-config", config])?;
    eventually(IN_FORCE, || {
        let refused = other.run(&["get", "namespaces"])?;
        ensure!(
            refused.stderr.contains("Unauthorized") || refused.stderr.contains("You must be logged in"),
            "{refused:?}"
        );
        Ok(())
    })
}

/// The kubeconfig in the Secret.
fn stored(world: &World) -> anyhow::Result<String> {
    let template = "go-template={{.data.value | base64decode}}";
    world.kubectl().ok(&["get", "secret", SECRET, "-n", "atoll-system", "-o", template])
}

/// Waits for another kubeconfig.
fn until_replaced(world: &World, before: &str) -> anyhow::Result<String> {
    eventually(IN_FORCE * 2, || {
        let now = stored(world)?;
        ensure!(now != before, "the Secret has not changed:\n{}", world.agent.log());
        Ok(now)
    })
}

fn client(world: &World, kubeconfig: &str) -> anyhow::Result<Kubectl> {
    let file: PathBuf = world.site.file("stored.kubeconfig");
    std::fs::write(&file, kubeconfig)?;
    Ok(Kubectl::new(file))
}

fn user(client: &Kubectl) -> anyhow::Result<String> {
    client.ok(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"])
}
