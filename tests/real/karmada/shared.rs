//! What two members of one host share, pushed to both: a definition, its custom resources and a class.

use anyhow::ensure;
use atoll_tests::{Karmada, Kubectl, VirtualSite, Way, eventually};

use super::{BEIJING, HANGZHOU, SETTLED};

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
  - {apiVersion: storage.k8s.io/v1, kind: StorageClass, name: pushed}
  placement: {clusterAffinity: {clusterNames: [ke-beijing, ke-hangzhou]}}
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
  resourceSelectors: [{apiVersion: pushed.example.com/v1, kind: Cog, name: cog}]
  placement: {clusterAffinity: {clusterNames: [ke-beijing, ke-hangzhou]}}
";

const COG: &str = r"
apiVersion: pushed.example.com/v1
kind: Cog
metadata: {name: cog, namespace: pushed}
";

/// The names on the host of what is shared.
const SHARED: [&str; 2] = ["crd/cogs.pushed.example.com", "storageclass/pushed"];

pub(super) fn what_is_shared_reaches_both(site: &VirtualSite) -> anyhow::Result<()> {
    let karmada = Karmada::beside(site.host());
    let host = site.host().kubectl();
    let mut members = Vec::new();
    for (name, way) in [(BEIJING, Way::Proxy), (HANGZHOU, Way::Path)] {
        let kubectl = site.administrator(name, way)?;
        karmada.join(name, kubectl.kubeconfig())?;
        karmada.ready(name)?;
        members.push((name, kubectl));
    }
    let above = karmada.kubectl();
    let definition = |teeth: &str| DEFINITION.replace("TYPE", teeth);
    above.ok_with(&["apply", "-f", "-"], &definition("integer"))?;
    above.ok_with(&["apply", "-f", "-"], REST)?;
    eventually(SETTLED, || above.ok_with(&["apply", "-f", "-"], COG))?;
    let everywhere = |check: &dyn Fn(&str, &Kubectl) -> anyhow::Result<()>| {
        eventually(SETTLED * 2, || members.iter().try_for_each(|(name, kubectl)| check(name, kubectl)))
    };
    everywhere(&|name, kubectl| {
        for shared in SHARED {
            let of = "-o=jsonpath={.metadata.annotations.work\\.karmada\\.io/namespace}";
            let work = kubectl.ok(&["get", shared, of])?;
            ensure!(work == format!("karmada-es-{name}"), "{shared} in {name} is of {work}");
        }
        kubectl.ok(&["get", "cogs.pushed.example.com/cog", "-n=pushed"]).map(drop)
    })?;

    // The next thing goes all the way, and what is there is not written again meanwhile.
    let versions = || host.ok(&["get", SHARED[0], SHARED[1], "-o=jsonpath={.items[*].metadata.resourceVersion}"]);
    let settled = versions()?;
    above.ok(&["label", "cogs.pushed.example.com/cog", "-n=pushed", "seen=yes"])?;
    everywhere(&|name, kubectl| {
        let cogs = kubectl.ok(&["get", "cogs.pushed.example.com", "-n=pushed", "-l=seen=yes", "-o=name"])?;
        ensure!(cogs.contains("cog"), "{name} has {cogs:?}");
        Ok(())
    })?;
    ensure!(versions()? == settled, "what both have as they want it is written all the same");

    // A change is made when both have asked for it.
    above.ok_with(&["apply", "-f", "-"], &definition("string"))?;
    eventually(SETTLED * 2, || {
        let path = "-o=jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.teeth.type}";
        let teeth = host.ok(&["get", SHARED[0], path])?;
        ensure!(teeth == "string", "teeth are still {teeth}");
        Ok(())
    })?;

    above.ok_with(&["delete", "-f", "-"], COG)?;
    above.ok_with(&["delete", "-f", "-"], REST)?;
    above.ok_with(&["delete", "-f", "-"], &definition("string"))?;
    eventually(SETTLED * 2, || {
        for shared in SHARED {
            ensure!(host.run(&["get", shared])?.stderr.contains("(NotFound)"), "{shared} is left on the host");
        }
        Ok(())
    })?;
    members.iter().try_for_each(|(name, kubectl)| karmada.unjoin(name, kubectl.kubeconfig(), name))
}
