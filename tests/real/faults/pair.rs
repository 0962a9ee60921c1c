//! Two virtual clusters whose watches the hub serves, and their watches.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout};
use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::{CONDITION_TIMEOUT, end};
use atoll_tests::virtual_site::Sharing;
use atoll_tests::{Curl, HostCluster, Kubectl, Route, VirtualSite, eventually};
use serde_json::Value;

pub(super) const MAPS: &str = "/api/v1/configmaps";

/// The parameters of a watch that begins with a state. Add `resourceVersion`.
pub(super) const STATE: &str =
    "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

/// Two virtual clusters whose watches of ConfigMaps the hub serves.
pub(super) struct Pair {
    pub(super) site: VirtualSite,
    pub(super) names: [String; 2],
    pub(super) admins: [Curl; 2],
}

/// An open watch.
pub(super) struct Watch {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// An event of a watch.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) kind: String,
    pub(super) object: Value,
}

// === impl Pair ===

impl Pair {
    /// Starts both clusters. Returns when the hub watches ConfigMaps, and the agent watches RBAC.
    pub(super) fn start(host: Arc<HostCluster>, name: &str) -> anyhow::Result<Self> {
        Self::with(host, name, Sharing::default())
    }

    /// The same, with other settings of the agent.
    pub(super) fn with(host: Arc<HostCluster>, name: &str, sharing: Sharing) -> anyhow::Result<Self> {
        let names = [format!("{name}-a"), format!("{name}-b")];
        let [a, b] = names.each_ref().map(String::as_str);
        let site = VirtualSite::sharing(host, &[(a, "beijing"), (b, "hangzhou")], sharing)?;
        let admins = [site.curl(a, Route::Path)?, site.curl(b, Route::Path)?];
        let pair = Self { site, names, admins };
        pair.shares(MAPS)?;
        eventually(CONDITION_TIMEOUT, || {
            ensure!(pair.site.metric("atoll_hub_rbac_watches")? == 4, "RBAC is not watched yet");
            Ok(())
        })?;
        Ok(pair)
    }

    /// Waits until the hub serves watches of a resource to both clusters.
    pub(super) fn shares(&self, path: &str) -> anyhow::Result<()> {
        eventually(CONDITION_TIMEOUT, || {
            let served = self.served()?;
            for admin in &self.admins {
                let list = admin.get(&format!("{path}?limit=1"))?.json()?;
                let version = list["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?;
                let watch = admin.get(&format!("{path}?watch=1&timeoutSeconds=1&resourceVersion={version}"))?;
                ensure!(watch.code == 200, "{watch:?}");
            }
            let answers = self.site.page("/metrics")?;
            let answers: Vec<_> = answers.lines().filter(|line| line.starts_with("atoll_hub_answers_total")).collect();
            ensure!(self.served()? >= served + 2, "{path} is not shared yet: {answers:?}");
            Ok(())
        })
    }

    /// The administrators of both clusters.
    pub(super) fn kubectls(&self) -> anyhow::Result<[Kubectl; 2]> {
        let [a, b] = &self.names;
        Ok([self.site.administrator(a, Route::Path)?, self.site.administrator(b, Route::Path)?])
    }

    /// Opens a watch in each cluster, which the hub serves. It begins with a state that has this version.
    pub(super) fn watches(&self, path: &str, version: &str) -> anyhow::Result<[Watch; 2]> {
        let query = format!("{STATE}&resourceVersion={version}");
        let [a, b] = self.kubectls()?;
        eventually(CONDITION_TIMEOUT, || {
            let (served, begun) = (self.served()?, self.begun()?);
            let watches = [Watch::start(&a, path, &query)?, Watch::start(&b, path, &query)?];
            eventually(CONDITION_TIMEOUT, || {
                ensure!(self.begun()? >= begun + 2, "the watches have not begun");
                Ok(())
            })?;
            let shared = self.served()? - served;
            if shared == 2 {
                return Ok(watches);
            }
            watches.into_iter().try_for_each(Watch::end)?;
            anyhow::bail!("the hub serves {shared} of two watches of {path}")
        })
    }

    /// The current version of the ConfigMaps.
    pub(super) fn version(&self) -> anyhow::Result<String> {
        let list = self.admins[0].get(&format!("{MAPS}?limit=1"))?.json()?;
        Ok(list["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?.to_owned())
    }

    /// The number of watches that the hub has served.
    pub(super) fn served(&self) -> anyhow::Result<u64> {
        self.site.metric("atoll_hub_answers_total{answer=\"watch\"}")
    }

    /// The number of watches that the hub has served, and of those that went to the host.
    fn begun(&self) -> anyhow::Result<u64> {
        self.site.metric("atoll_hub_answers_total")
    }

    /// What the agent says about a shared watch.
    pub(super) fn feed(&self, path: &str) -> anyhow::Result<Value> {
        let status: Value = serde_json::from_str(&self.site.page("/status")?)?;
        let feeds = status["feeds"].as_array().context("no feeds")?;
        Ok(feeds.iter().find(|feed| feed["path"] == path).with_context(|| format!("{path}: {status}"))?.clone())
    }
}

// === impl Watch ===

impl Watch {
    pub(super) fn start(kubectl: &Kubectl, path: &str, query: &str) -> anyhow::Result<Self> {
        let mut child = kubectl.start(&["get", "--raw", &format!("{path}?{query}")])?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        Ok(Self { child, lines })
    }

    /// The next event; `None` at the end of the watch. kubectl has a time limit, so this does not wait forever.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Event>> {
        let Some(line) = self.lines.next().transpose()? else { return Ok(None) };
        let mut event: Value = serde_json::from_str(&line).with_context(|| format!("not an event: {line}"))?;
        let kind = event["type"].as_str().context("no type")?.to_owned();
        Ok(Some(Event { kind, object: event["object"].take() }))
    }

    /// The next event that is no bookmark, as its type and its object's name. `END` at the end of the watch.
    pub(super) fn change(&mut self) -> anyhow::Result<String> {
        while let Some(event) = self.next()? {
            if event.kind != "BOOKMARK" {
                return Ok(event.to_string());
            }
        }
        Ok("END".to_owned())
    }

    /// The initial events, as their types and the objects' names.
    pub(super) fn initial(&mut self) -> anyhow::Result<Vec<String>> {
        let mut events = Vec::new();
        loop {
            let event = self.next()?.context("the watch ended before the mark")?;
            if event.kind == "BOOKMARK" {
                return Ok(events);
            }
            events.push(event.to_string());
        }
    }

    pub(super) fn end(mut self) -> anyhow::Result<()> {
        let _ended = self.child.try_wait()?;
        end(self.child).map(drop)
    }
}

// === impl Event ===

impl Event {
    /// The name of the object.
    pub(super) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The version of the object.
    pub(super) fn version(&self) -> &str {
        self.object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.object["code"] {
            Value::Number(code) => write!(f, "{} {code}", self.kind),
            _ => write!(f, "{} {}", self.kind, self.name()),
        }
    }
}
