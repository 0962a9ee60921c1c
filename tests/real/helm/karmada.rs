//! `karmadaRights`. Karmada is any API server here.

use anyhow::ensure;

use super::left::{self, Snapshot};
use super::{Admin, chart, text, values_of};

/// The namespace of Karmada's members.
const MEMBERS: [&str; 3] = [
    "ConfigMap karmada-cluster/kube-root-ca.crt",
    "Namespace karmada-cluster",
    "ServiceAccount karmada-cluster/default",
];

/// A release creates the namespace of members, and leaves it behind. Another one uses it.
pub(super) fn rights(admin: &Admin) -> anyhow::Result<()> {
    let namespace = "karmada-system";
    admin.kubectl.ok(&["create", "namespace", namespace])?;
    let before = Snapshot::take(&admin.kubectl)?;
    let (chart, values) = (chart(), values_of(&chart(), "karmada-rights")?);
    for release in ["first", "second"] {
        let helm = |verb: &str| admin.helm.ok(&[verb, release, text(&chart)?, "-f", &values, "-n", namespace]);
        helm("install")?;
        let as_server = "--as=system:serviceaccount:karmada-system:atoll-proxy-server";
        let right = ["auth", "can-i", "create", "secrets", "-n", "karmada-cluster", as_server];
        ensure!(admin.kubectl.ok(&right)? == "yes\n", "the account may not create Secrets of members");
        // Now the namespace exists.
        helm("upgrade")?;
        admin.helm.ok(&["uninstall", release, "-n", namespace, "--wait"])?;
        left::exactly(&admin.kubectl, &before, &MEMBERS)?;
    }
    Ok(())
}
