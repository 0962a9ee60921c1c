//! Namespaces that are written into the moment they exist.

use anyhow::{Context, ensure};
use atoll_tests::{Route, VirtualSite};
use serde_json::{Value, json};

use super::HANGZHOU;

/// How many, one after the other; `ATOLL_BURST` names another number.
const NAMESPACES: usize = 500;
/// So many that one call of kubectl ends within the harness' limit for calls.
const AT_ONCE: usize = 50;

/// No write may meet a 403: a namespace is born with all its bindings.
pub(super) fn a_new_namespace_takes_writes_at_once(site: &VirtualSite) -> anyhow::Result<()> {
    let number = match std::env::var("ATOLL_BURST") {
        Ok(text) => text.parse().context("ATOLL_BURST is no number")?,
        Err(_) => NAMESPACES,
    };
    let admin = site.administrator(HANGZHOU, Route::Proxy)?;
    // kubectl keeps the order of a List, on one connection. It stops at no error: each would be printed.
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
