//! Everything of a removed virtual cluster is gone, and other virtual clusters keep what is theirs.

use anyhow::ensure;
use atoll_tests::{HostCluster, eventually};
use serde_json::Value;

use super::world::{AGENT, IN_FORCE, agent, clusters, gear, gears, server, stop, text};

const GONE: &str = "cl-gone";
const KEPT: &str = "cl-kept";
/// One kind that both have, and one that only the removed one has.
const BOTH: &str = "both.removal.example.com";
const ONE: &str = "one.removal.example.com";

pub(super) fn leaves_nothing(host: &HostCluster) -> anyhow::Result<()> {
    let site = server(&[GONE, KEPT])?;
    let running = agent(&site, AGENT, host, &[(GONE, "beijing"), (KEPT, "hangzhou")])?;
    let (gone, kept) = (site.administrator(GONE)?, site.administrator(KEPT)?);
    for (cluster, admin) in [(GONE, &gone), (KEPT, &kept)] {
        admin.ok(&["create", "namespace", "shop"])?;
        admin.ok(&["create", "clusterrole", "readers", "--verb=get", "--resource=pods"])?;
        admin.ok(&["create", "clusterrolebinding", "readers", "--clusterrole=readers", "--user=jane"])?;
        admin.ok_with(&["create", "-f", "-"], &gears(BOTH, cluster))?;
        // Large annotations are stored in the root namespace.
        admin.ok(&["annotate", &format!("crd/gears.{BOTH}"), &format!("large={}", "x".repeat(1000))])?;
        eventually(IN_FORCE, || admin.ok_with(&["create", "-f", "-"], &gear(BOTH, "main")))?;
    }
    gone.ok_with(&["create", "-f", "-"], &gears(ONE, GONE))?;
    eventually(IN_FORCE, || gone.ok_with(&["create", "-f", "-"], &gear(ONE, "main")))?;

    let list = clusters(host, &["list"], 0)?;
    let row = list.lines().find(|line| line.starts_with(GONE)).map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Five namespaces and the root namespace; two custom objects and a FlowSchema; two definitions.
    ensure!(row.as_ref().is_some_and(|row| row[1] == "6" && row[3..5] == ["3", "2"]), "{list}");
    ensure!(list.contains("<unknown>"), "{list}");
    let listed: Value = serde_json::from_str(&clusters(host, &["list", GONE, "-o", "json"], 0)?)?;
    ensure!(listed["items"][0]["name"] == GONE && listed["items"][0]["counts"]["namespaces"] == 6, "{listed}");
    let details = clusters(host, &["list", GONE], 0)?;
    for expect in ["shop-cl-gone", "(cluster scope)", "vc:cl-gone:readers", &format!("gears.{ONE} (shared)")] {
        ensure!(details.contains(expect), "{expect} is not in:\n{details}");
    }

    // It is declared, so nothing happens.
    let file = site.file(&format!("{AGENT}.yaml"));
    let refused = clusters(host, &["remove", GONE, "--yes", "--agent-config", text(&file)?], 3)?;
    ensure!(refused.contains("is still declared by") && refused.contains("site-c.yaml"), "{refused}");
    let served = clusters(host, &["remove", GONE, "--yes"], 3)?;
    ensure!(served.contains("a proxy-agent still serves cl-gone"), "{served}");
    ensure!(gone.ok(&["get", "namespace", "shop", "-o=jsonpath={.status.phase}"])? == "Active");
    stop(running)?;

    let plan = clusters(host, &["remove", GONE, "--dry-run"], 0)?;
    ensure!(plan.contains("delete namespaces shop-cl-gone") && plan.contains(&format!("gears.{BOTH}")), "{plan}");
    let asked = clusters(host, &["remove", GONE], 1)?;
    ensure!(asked.contains("add --yes"), "{asked}");
    // Other trials on this host have virtual clusters, too, whose names change the width of the columns.
    let is_ours = |line: &&str| [GONE, KEPT].iter().any(|name| line.starts_with(name));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let ours = |list: &str| list.lines().filter(is_ours).map(words).collect::<Vec<_>>();
    let now = clusters(host, &["list"], 0)?;
    ensure!(ours(&now) == ours(&list), "something has changed:\n{now}\ninstead of\n{list}");

    // An interrupted command continues.
    let late = clusters(host, &["remove", GONE, "--yes", "--timeout", "0"], 1)?;
    ensure!(late.contains("still exist"), "{late}");
    let removed = clusters(host, &["remove", GONE, "--yes"], 0)?;
    ensure!(removed.contains("has nothing of virtual cluster cl-gone any more"), "{removed}");
    ensure!(clusters(host, &["remove", GONE, "--yes"], 0)?.contains("has nothing"));
    ensure!(!clusters(host, &["list"], 0)?.contains(GONE));

    let admin = host.kubectl();
    let everything = admin.ok(&["get", "namespaces,clusterroles,flowschemas,crd", "-o", "json"])?;
    ensure!(!everything.contains(GONE), "the host still names the removed cluster");
    ensure!(admin.fails(&["get", &format!("crd/gears.{ONE}")])?.contains("NotFound"));
    let gears = admin.ok(&["get", &format!("gears.{BOTH}"), "-o", "name"])?;
    ensure!(gears.trim().ends_with("main.cl-kept"), "{gears}");

    // The other one has everything, also its large annotation.
    let _running = agent(&site, "again", host, &[(KEPT, "hangzhou")])?;
    eventually(IN_FORCE, || {
        let definition = kept.ok(&["get", &format!("crd/gears.{BOTH}"), "-o", "json"])?;
        ensure!(definition.contains(&"x".repeat(1000)) && definition.contains("cl-kept"), "{definition}");
        kept.ok(&["get", &format!("gears.{BOTH}"), "main"])
    })?;
    kept.ok(&["get", "clusterrolebinding", "readers"]).map(drop)
}
