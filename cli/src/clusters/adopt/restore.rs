//! Restores an export.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use host_client::api::Api;
use rewrite::ClusterName;
use rewrite::name::endings;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::args::Args;
use super::belongs::Belonging;
use super::put::{Done, is_missing, put};
use super::reader::{Reader, examine};
use crate::clusters::document::{Document, Header};
use crate::clusters::inventory::Inventory;
use crate::clusters::kinds::{Resource, Resources};
use crate::clusters::progress::{Progress, note};

/// The time until the host serves the objects of a definition that was just created.
const ESTABLISHED: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum number of failures that are printed.
const MAX_PRINTED: usize = 20;

#[derive(Default)]
struct Counts {
    created: usize,
    joined: usize,
    present: usize,
    failed: usize,
}

/// What is known about the host.
struct Restore<'a> {
    api: &'a Api,
    cluster: &'a ClusterName,
    resources: Resources,
    belonging: Belonging<'a>,
    counts: Counts,
}

pub(super) async fn run(api: &Api, args: &Args, file: &Path, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let (header, end) = examine(file)?;
    let (cluster, total) = (&args.cluster, end.objects.values().sum::<usize>());
    ensure!(header.cluster()? == *cluster, "{} is an export of {}", file.display(), header.cluster()?);
    check(api, args, &header).await?;
    if !header.secrets {
        note("the export has no Secrets; create those that workloads need yourself");
    }
    let resources = Resources::of(api, &[]).await?;
    let mut restore =
        Restore { api, cluster, resources, belonging: Belonging::new(cluster), counts: Counts::default() };
    let (mut reader, mut progress, mut seen) = (Reader::open(file)?, Progress::new(), 0);
    while let Some(document) = reader.next()? {
        let Document::Object(object) = document else { continue };
        seen += 1;
        progress.tell(|| format!("{seen} of {total} objects"));
        if args.dry_run {
            restore.try_out(&object, out).await?;
        } else {
            restore.object(&object).await;
        }
    }
    let Counts { created, joined, present, failed } = restore.counts;
    let would = if args.dry_run { "would be " } else { "" };
    writeln!(out, "{created} objects {would}created, {joined} changed, {present} already there, {failed} failed")?;
    if failed > 0 {
        return Ok(ExitCode::FAILURE);
    }
    if !args.dry_run
        && let Some(identity) = &header.identity
    {
        writeln!(out, "{cluster} has the identity {identity} (the uid of its kube-system)")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that the host has no other virtual cluster that the restored one would conflict with.
async fn check(api: &Api, args: &Args, header: &Header) -> anyhow::Result<()> {
    let (all, cluster) = (Inventory::all(api, None).await?, &args.cluster);
    let ends = |long: &ClusterName, short: &ClusterName| endings(long.as_str()).any(|end| end == short.as_str());
    let mut others = all.iter().filter(|(_, other)| !other.namespaces.is_empty()).map(|(name, _)| name);
    if let Some(other) = others.find(|other| ends(other, cluster) || ends(cluster, other)) {
        bail!(
            "the host has the virtual cluster {other}, whose namespaces can have the same names as those of {cluster}"
        );
    }
    let present = all.get(cluster).and_then(Inventory::identity);
    if let (Some(present), Some(identity)) = (present, &header.identity)
        && present != identity
        && !args.yes
        && !args.dry_run
    {
        bail!(
            "the host already has a virtual cluster {cluster} with another identity ({present}); add --yes to give it the \
             identity of the export ({identity}) and the objects that it lacks"
        );
    }
    Ok(())
}

// === impl Restore ===

impl Restore<'_> {
    async fn object(&mut self, object: &Value) {
        match self.create(object).await {
            Ok(Done::Created) => self.counts.created += 1,
            Ok(Done::Joined) => self.counts.joined += 1,
            Ok(Done::Present) => self.counts.present += 1,
            Err(error) => {
                self.counts.failed += 1;
                if self.counts.failed <= MAX_PRINTED {
                    note(&format!("{}: {error:#}", describe(object)));
                }
            }
        }
    }

    async fn create(&mut self, object: &Value) -> anyhow::Result<Done> {
        let resource = self.resource(object, ESTABLISHED).await?;
        self.belonging.check(&resource, object)?;
        put(self.api, self.cluster, &resource, object).await
    }

    async fn try_out(&mut self, object: &Value, out: &mut dyn Write) -> anyhow::Result<()> {
        let is_new = match self.resource(object, Duration::ZERO).await {
            Ok(resource) => {
                self.belonging.check(&resource, object).with_context(|| describe(object))?;
                is_missing(self.api, &resource, object).await.with_context(|| describe(object))?
            }
            // The export has its definition.
            Err(_) => true,
        };
        if is_new {
            self.counts.created += 1;
            writeln!(out, "create {}", describe(object))?;
        } else {
            self.counts.present += 1;
        }
        Ok(())
    }

    /// How the host serves the kind of an object. A definition that was just created is not served at once.
    async fn resource(&mut self, object: &Value, patience: Duration) -> anyhow::Result<Resource> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let until = Instant::now() + patience;
        loop {
            if let Some(resource) = self.resources.of_kind(api_version, kind) {
                return Ok(resource.clone());
            }
            if Instant::now() >= until {
                bail!("the host does not serve {kind} of {api_version}");
            }
            sleep(POLL_INTERVAL).await;
            self.resources = Resources::of(self.api, &[]).await?;
        }
    }
}

/// `Kind NAMESPACE/NAME`.
fn describe(object: &Value) -> String {
    let metadata = &object["metadata"];
    let (kind, name) = (object["kind"].as_str(), metadata["name"].as_str().unwrap_or_default());
    let namespace = metadata["namespace"].as_str().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {namespace}{name}", kind.unwrap_or_default())
}
