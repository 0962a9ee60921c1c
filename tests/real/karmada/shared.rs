//! Objects that two members on the same host share, propagated to both: definitions with custom resources, a class, and
//! a node port that the host has only once.

use anyhow::ensure;
use atoll_tests::{Karmada, Kubectl, Route, VirtualSite, eventually};

use super::{BEIJING, CLUSTERS, HANGZHOU, SETTLED};

const DEFINITION: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cogs.pushed.example.com}
spec:
  group: pushed.example.com
  names: {kind: Cog, plural: cogs}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {teeth: {type: TYPE}}}}}}
";

const REST: &str = r"
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: pushed}
spec:
  resourceSelectors:
  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: cogs.pushed.example.com}
  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: racks.pushed.example.com}
  - {apiVersion: pushed.example.com/v1, kind: Rack, name: rack}
  - {apiVersion: storage.k8s.io/v1, kind: StorageClass, name: pushed}
  placement: {clusterAffinity: {clusterNames: [ke-beijing, ke-hangzhou]}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: racks.pushed.example.com}
spec:
  group: pushed.example.com
  names: {kind: Rack, plural: racks}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: pushed}
provisioner: example.com/disks
---
apiVersion: v1
kind: Namespace
metadata: {name: pushed}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: cog, namespace: pushed}
spec:
  resourceSelectors:
  - {apiVersion: pushed.example.com/v1, kind: Cog, name: cog}
  - {apiVersion: v1, kind: Service, name: cog}
  placement: {clusterAffinity: {clusterNames: [ke-beijing, ke-hangzhou]}}
---
apiVersion: v1
kind: Service
metadata: {name: cog, namespace: pushed}
spec: {type: NodePort, selector: {app: cog}, ports: [{port: 80}]}
";

const CUSTOM: &str = r"
apiVersion: pushed.example.com/v1
kind: Cog
metadata: {name: cog, namespace: pushed}
---
apiVersion: pushed.example.com/v1
kind: Rack
metadata: {name: rack}
";

/// The names of the shared objects on the host.
const SHARED: [&str; 3] = ["crd/cogs.pushed.example.com", "crd/racks.pushed.example.com", "storageclass/pushed"];

pub(super) fn what_is_shared_reaches_both(site: &VirtualSite) -> anyhow::Result<()> {
    let karmada = Karmada::beside(site.host());
    let host = site.host().kubectl();
    let mut members = Vec::new();
    for (name, route) in [(BEIJING, Route::Proxy), (HANGZHOU, Route::Path)] {
        let kubectl = site.administrator(name, route)?;
        karmada.join(name, kubectl.kubeconfig())?;
        karmada.ready(name)?;
        members.push((name, kubectl));
    }
    let above = karmada.kubectl();
    let definition = |teeth: &str| DEFINITION.replace("TYPE", teeth);
    above.ok_with(&["apply", "-f", "-"], &definition("integer"))?;
    above.ok_with(&["apply", "-f", "-"], REST)?;
    // Karmada schedules a kind only to members that serve it, and retries after minutes.
    eventually(SETTLED * 2, || {
        let kinds =
            "-o=jsonpath={.status.apiEnablements[?(@.groupVersion==\"pushed.example.com/v1\")].resources[*].kind}";
        members.iter().try_for_each(|(name, _)| {
            let served = above.ok(&["get", "cluster", name, kinds])?;
            ensure!(served.contains("Cog") && served.contains("Rack"), "{name} serves {served:?}");
            Ok(())
        })
    })?;
    eventually(SETTLED, || above.ok_with(&["apply", "-f", "-"], CUSTOM))?;
    let everywhere = |check: &dyn Fn(&str, &Kubectl) -> anyhow::Result<()>| {
        eventually(SETTLED * 2, || members.iter().try_for_each(|(name, kubectl)| check(name, kubectl)))
    };
    everywhere(&|name, kubectl| {
        for shared in SHARED {
            let of = "-o=jsonpath={.metadata.annotations.work\\.karmada\\.io/namespace}";
            let work = kubectl.ok(&["get", shared, of])?;
            ensure!(work == format!("karmada-es-{name}"), "{shared} in {name} belongs to {work}");
        }
        kubectl.ok(&["get", "cogs.pushed.example.com/cog", "-n=pushed"])?;
        ensure!(kubectl.ok(&["get", "racks.pushed.example.com", "-o=name"])? == "rack.pushed.example.com/rack\n");
        Ok(())
    })?;
    let racks = host.ok(&["get", "racks.pushed.example.com", "-o=name"])?;
    ensure!(racks == "rack.pushed.example.com/rack.ke-beijing\nrack.pushed.example.com/rack.ke-hangzhou\n", "{racks}");
    let port = "-o=jsonpath={.spec.ports[0].nodePort}";
    let asked = above.ok(&["get", "service", "cog", "-n=pushed", port])?;
    everywhere(&|name, kubectl| {
        let shown = kubectl.ok(&["get", "service", "cog", "-n=pushed", port])?;
        ensure!(shown == asked, "{name} shows node port {shown}, not {asked}");
        Ok(())
    })?;
    let real = |cluster: &str| host.ok(&["get", "service", "cog", &format!("-n=pushed-{cluster}"), port]);
    let (one, other) = (real(BEIJING)?, real(HANGZHOU)?);
    ensure!(
        one != other && [&one, &other].contains(&&asked),
        "the host has the ports {one} and {other}; the requested port is {asked}"
    );

    // A later object reaches both members. Karmada does not write the existing objects again.
    let versions = || {
        let version = "-o=jsonpath={.metadata.resourceVersion}";
        let services = CLUSTERS.map(|(name, _)| ["service/cog".to_owned(), format!("-n=pushed-{name}")]);
        let shared = SHARED.map(|shared| [shared.to_owned(), "-n=default".to_owned()]);
        let all = services.iter().chain(&shared);
        all.map(|[object, namespace]| host.ok(&["get", object, namespace, version])).collect::<anyhow::Result<Vec<_>>>()
    };
    let settled = versions()?;
    above.ok(&["label", "cogs.pushed.example.com/cog", "-n=pushed", "seen=yes"])?;
    everywhere(&|name, kubectl| {
        let cogs = kubectl.ok(&["get", "cogs.pushed.example.com", "-n=pushed", "-l=seen=yes", "-o=name"])?;
        ensure!(cogs.contains("cog"), "{name} has {cogs:?}");
        Ok(())
    })?;
    ensure!(versions()? == settled, "a request without a change causes a write");

    // The agent applies a change when both members have requested it.
    above.ok_with(&["apply", "-f", "-"], &definition("string"))?;
    eventually(SETTLED * 2, || {
        let path = "-o=jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.teeth.type}";
        let teeth = host.ok(&["get", SHARED[0], path])?;
        ensure!(teeth == "string", "teeth are still {teeth}");
        Ok(())
    })?;

    above.ok_with(&["delete", "-f", "-"], CUSTOM)?;
    above.ok_with(&["delete", "-f", "-"], REST)?;
    above.ok_with(&["delete", "-f", "-"], &definition("string"))?;
    eventually(SETTLED * 2, || {
        for shared in SHARED {
            ensure!(host.run(&["get", shared])?.stderr.contains("(NotFound)"), "{shared} still exists on the host");
        }
        Ok(())
    })?;
    members.iter().try_for_each(|(name, kubectl)| karmada.unjoin(name, kubectl.kubeconfig(), name))
}
