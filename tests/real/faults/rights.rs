//! The rights to watches that the hub serves: they end with a change of RBAC, and cost nothing without one.

use std::sync::Arc;
use std::thread::{JoinHandle, spawn};

use anyhow::{anyhow, ensure};
use atoll_tests::curl::Response;
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{HostCluster, Route, eventually};

use super::pair::{MAPS, Pair};

/// The number of ConfigMaps that are written while watches are open.
const EVENTS: usize = 5;

/// The binding is deleted at the host, so the agent learns of it only from its own watch.
pub(super) fn end_with_rbac_in_quiet_watches(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let pair = Pair::start(host, "revoked")?;
    let [cluster, _] = &pair.names;
    let admin = pair.site.administrator(cluster, Route::Path)?;
    admin.ok(&["create", "rolebinding", "jane", "-n", "default", "--clusterrole=view", "--user=jane"])?;
    let jane = pair.site.curl_like(&pair.site.user(cluster, "jane")?, cluster, Route::Path)?;
    let path = format!("/api/v1/namespaces/default/configmaps?watch=1&resourceVersion={}", pair.version()?);
    let served = pair.served()?;
    let (watching, of_jane) = (jane.clone(), path.clone());
    let watch = spawn(move || watching.get(&of_jane));
    eventually(CONDITION_TIMEOUT, || {
        let now = pair.served()?;
        ensure!(now > served, "{now} watches are shared");
        Ok(())
    })?;
    let operator = pair.site.host().kubectl();
    operator.ok(&["delete", "rolebinding", "jane", "-n", &format!("default-{cluster}")])?;
    // curl waits much longer than the watch may last, and then fails.
    let ended = joined(watch)?;
    ensure!(ended.code == 200 && ended.body.is_empty(), "{ended:?}");
    eventually(CONDITION_TIMEOUT, || jane.get(&path)?.refused(403, "Forbidden", "cannot watch").map(drop))
}

/// Other trials change RBAC of the host, but not all the time.
pub(super) fn need_no_reviews_for_events(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let pair = Pair::start(host, "reviews")?;
    eventually(CONDITION_TIMEOUT, || {
        let from = pair.version()?;
        let served = pair.served()?;
        let watches = pair.admins.clone().map(|admin| {
            let path = format!("{MAPS}?watch=1&timeoutSeconds=10&resourceVersion={from}");
            spawn(move || admin.get(&path))
        });
        eventually(CONDITION_TIMEOUT, || {
            let now = pair.served()?;
            ensure!(now >= served + 2, "{now} watches are shared");
            Ok(())
        })?;
        let before = reviews(&pair)?;
        for number in 0..EVENTS {
            for admin in &pair.admins {
                let name = format!("events-{from}-{number}");
                let map = format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}"}}}}"#);
                let created = admin.send("POST", "/api/v1/namespaces/default/configmaps", &map)?;
                ensure!(created.code == 201, "{created:?}");
            }
        }
        for watch in watches {
            let shown = joined(watch)?;
            let added = shown.body.matches(&format!("\"name\":\"events-{from}-")).count();
            ensure!(shown.code == 200 && added == EVENTS, "{added}: {shown:?}");
        }
        let reviews = reviews(&pair)? - before;
        ensure!(reviews == 0, "{reviews} reviews");
        Ok(())
    })
}

/// Informers begin new watches all the time. Other trials change RBAC of the host, but not all the time.
pub(super) fn need_no_reviews_for_the_next_watch(host: Arc<HostCluster>) -> anyhow::Result<()> {
    let pair = Pair::start(host, "renewed")?;
    let operator = pair.site.host().kubectl();
    let [cluster, _] = &pair.names;
    let jane = pair.site.curl_like(&pair.site.user(cluster, "jane")?, cluster, Route::Path)?;
    let (root, user) = (format!("atoll-root-{cluster}"), format!("--user=vc:{cluster}:jane"));
    operator.ok(&["create", "rolebinding", "jane", "-n", &root, "--clusterrole=view", &user])?;
    let sent = || pair.site.metric("atoll_subject_access_reviews_total");
    eventually(3 * CONDITION_TIMEOUT, || {
        let (from, served, mut before) = (pair.version()?, pair.served()?, 0);
        // Seven seconds in total: longer than a review is cached without an extension (4.75 s).
        for number in 0..7 {
            let watch = jane.get(&format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={from}"))?;
            ensure!(watch.code == 200, "{watch:?}");
            if number == 0 {
                before = sent()?;
            }
        }
        let (served, reviews) = (pair.served()? - served, sent()? - before);
        ensure!((served, reviews) == (7, 0), "{served} of 7 watches were shared, with {reviews} reviews");
        Ok(())
    })?;
    // At the host, so the agent learns of the deletion only from its own watch of RBAC.
    operator.ok(&["delete", "rolebinding", "jane", "-n", &root])?;
    eventually(CONDITION_TIMEOUT, || {
        let version = pair.version()?;
        let next = jane.get(&format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={version}"))?;
        next.refused(403, "Forbidden", "cannot watch").map(drop)
    })
}

/// The response of a watch that has ended.
fn joined(watch: JoinHandle<anyhow::Result<Response>>) -> anyhow::Result<Response> {
    watch.join().map_err(|_| anyhow!("the watch panicked"))?
}

/// The number of checks of the rights to open watches.
fn reviews(pair: &Pair) -> anyhow::Result<u64> {
    pair.site.metric("atoll_hub_reviews_total")
}
