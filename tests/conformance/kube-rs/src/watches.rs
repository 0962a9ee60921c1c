//! Watches of kube's runtime.

use std::collections::BTreeSet;
use std::pin::pin;

use anyhow::{Context, bail, ensure};
use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams, VersionMatch};
use kube::runtime;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::World;

pub(crate) async fn streaming_list(world: &World) -> anyhow::Result<()> {
    let changes = Changes::new(world, "streaming").await?;
    let watcher = runtime::watcher(changes.maps.clone(), changes.config().streaming_lists());
    changes.are_seen(watcher).await
}

pub(crate) async fn list_and_watch(world: &World) -> anyhow::Result<()> {
    let changes = Changes::new(world, "listed").await?;
    // The list has several pages, so that kube uses `continue`.
    let watcher = runtime::watcher(changes.maps.clone(), changes.config().page_size(2));
    changes.are_seen(watcher).await
}

pub(crate) async fn metadata(world: &World) -> anyhow::Result<()> {
    let changes = Changes::new(world, "metadata").await?;
    // With this type, kube requests only metadata.
    let maps: Api<PartialObjectMeta<ConfigMap>> = world.api();
    let watcher = runtime::watcher(maps, changes.config());
    changes.are_seen(watcher).await
}

pub(crate) async fn reflector(world: &World) -> anyhow::Result<()> {
    let changes = Changes::new(world, "reflected").await?;
    let (store, writer) = runtime::reflector::store();
    let watcher = runtime::watcher(changes.maps.clone(), changes.config().streaming_lists());
    let mut seen = pin!(runtime::reflector(writer, watcher));
    while store.len() < Changes::FIRST.len() {
        seen.try_next().await?.context("the watch ended")?;
    }
    changes.make("late").await?;
    while store.len() == Changes::FIRST.len() {
        seen.try_next().await?.context("the watch ended")?;
    }
    let selection = ListParams::default().labels(&format!("check={}", changes.check));
    let listed = changes.maps.list(&selection).await?;
    ensure!(listed.items.len() == store.len(), "{} listed, {} reflected", listed.items.len(), store.len());
    for map in &listed.items {
        let key = runtime::reflector::ObjectRef::from_obj(map);
        ensure!(store.get(&key).as_deref() == Some(map), "{} differs from the list", map.name_any());
    }
    Ok(())
}

/// Three objects that exist before a watch, and their changes during it.
struct Changes {
    maps: Api<ConfigMap>,
    check: &'static str,
}

impl Changes {
    const FIRST: [&str; 3] = ["a", "b", "c"];

    async fn new(world: &World, check: &'static str) -> anyhow::Result<Self> {
        let changes = Self { maps: world.api(), check };
        let mut last = None;
        for name in Self::FIRST {
            last = changes.make(name).await?.resource_version();
        }
        // kube starts a streaming list at version 0, for which the host uses its cache. A list that is at least as new
        // as the last object updates this cache.
        let fresh = ListParams::default().at(&last.context("no resourceVersion")?).matching(VersionMatch::NotOlderThan);
        changes.maps.list(&fresh).await?;
        Ok(changes)
    }

    async fn make(&self, name: &str) -> anyhow::Result<ConfigMap> {
        let metadata = json!({"name": self.name(name), "labels": {"check": self.check}});
        let map = serde_json::from_value(json!({"metadata": metadata}))?;
        Ok(self.maps.create(&PostParams::default(), &map).await?)
    }

    fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.check)
    }

    fn config(&self) -> Config {
        Config::default().labels(&format!("check={}", self.check))
    }

    /// The watch begins with all three objects. Then a change, a deletion and a creation arrive, each once and in
    /// order.
    async fn are_seen<K: ResourceExt>(
        &self,
        watcher: impl Stream<Item = runtime::watcher::Result<Event<K>>>,
    ) -> anyhow::Result<()> {
        let mut watcher = pin!(watcher);
        let mut first = BTreeSet::new();
        loop {
            match watcher.next().await.context("the watch ended")?? {
                Event::Init => {}
                Event::InitApply(map) => _ = first.insert(map.name_any()),
                Event::InitDone => break,
                Event::Apply(map) | Event::Delete(map) => bail!("{} before the list was done", map.name_any()),
            }
        }
        ensure!(first == Self::FIRST.map(|name| self.name(name)).into(), "{first:?}");
        let label = Patch::Merge(json!({"metadata": {"labels": {"changed": "yes"}}}));
        self.maps.patch(&self.name("a"), &PatchParams::default(), &label).await?;
        self.maps.delete(&self.name("b"), &DeleteParams::default()).await?;
        self.make("d").await?;
        let (mut events, wanted) = (Vec::new(), [("apply", "a"), ("delete", "b"), ("apply", "d")]);
        while events.len() < wanted.len() {
            events.push(match watcher.next().await.context("the watch ended")?? {
                Event::Apply(map) => ("apply", map.name_any()),
                Event::Delete(map) => ("delete", map.name_any()),
                Event::Init | Event::InitApply(_) | Event::InitDone => bail!("the watch began anew"),
            });
        }
        ensure!(events == wanted.map(|(what, name)| (what, self.name(name))), "{events:?}");
        Ok(())
    }
}
