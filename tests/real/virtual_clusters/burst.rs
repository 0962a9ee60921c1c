//! Writes to namespaces immediately after their creation.

use anyhow::{Context, ensure};
use atoll_tests::{Route, VirtualSite};
use serde_json::{Value, json};

use super::HANGZHOU;

/// The number of namespaces. `ATOLL_BURST` overrides it.
const NAMESPACES: usize = 500;
/// The number of namespaces in one kubectl command, which has a time limit.
const AT_ONCE: usize = 50;

/// No write may get 403, because a new namespace has all its bindings.
pub(super) fn takes_writes_at_once(site: &VirtualSite) -> anyhow::Result<()> {
    let number = match std::env::var("ATOLL_BURST") {
        Ok(text) => text.parse().context("ATOLL_BURST is not a number")?,
        Err(_) => NAMESPACES,
    };
    let admin = site.administrator(HANGZHOU, Route::Proxy)?;
    // kubectl creates the objects of a List in order, on one connection. It continues after errors and prints them.
    let mut done = 0;
    while done < number {
        let chunk = done..number.min(done + AT_ONCE);
        let items: Vec<Value> = chunk.clone().flat_map(pair).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let created = admin.ok_with(&["create", "-f", "-", "-o", "name"], &list)?;
        ensure!(created.lines().count() == 2 * chunk.len(), "{created}");
        done = chunk.end;
    }
    Ok(())
}

fn pair(number: usize) -> [Value; 2] {
    let name = format!("burst-{number}");
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first", "namespace": name}}),
    ]
}
