//! Restores an export.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, ensure};
use host_client::api::Api;
use rewrite::ClusterName;
use rewrite::name::endings;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use virtual_cluster::declared;

use super::args::Args;
use super::belongs::Belonging;
use super::pod_specs::describes_pods;
use super::policies::Policies;
use super::put::{Done, is_missing, preview, put};
use super::reader::{Reader, examine};
use super::{namespace, objection};
use crate::clusters::document::{Document, Header};
use crate::clusters::inventory::Inventory;
use crate::clusters::kinds::{Resource, Resources};
use crate::clusters::progress::{Progress, note};

/// The time until the host serves the objects of a definition that was just created.
const ESTABLISHED: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum number of failures that are printed.
const MAX_PRINTED: usize = 20;

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    created: usize,
    joined: usize,
    present: usize,
    waiting: usize,
    undeclared: usize,
    failed: usize,
}

/// What is known about the host.
struct Restore<'a> {
    api: &'a Api,
    args: &'a Args,
    /// The identity in the header of the file.
    identity: Option<&'a str>,
    resources: Resources,
    belonging: Belonging<'a>,
    /// `None` until the first workload.
    policies: Option<Policies>,
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
    let mut restore = Restore::new(api, args, header.identity.as_deref(), resources);
    let (mut reader, mut progress, mut seen) = (Reader::open(file)?, Progress::new(), 0);
    while let Some(document) = reader.next()? {
        let Document::Object(object) = document else { continue };
        seen += 1;
        progress.tell(|| format!("{seen} of {total} objects"));
        restore.object(&object, out).await?;
    }
    restore.finish(out)
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

impl<'a> Restore<'a> {
    fn new(api: &'a Api, args: &'a Args, identity: Option<&'a str>, resources: Resources) -> Self {
        let belonging = Belonging::new(&args.cluster);
        Self { api, args, identity, resources, belonging, policies: None, counts: Counts::default() }
    }

    async fn object(&mut self, object: &Value, out: &mut dyn Write) -> anyhow::Result<()> {
        if self.belonging.has_failed(object) {
            self.counts.failed += 1;
            return Ok(());
        }
        let outcome = self.create(object).await;
        let is_namespace = object["apiVersion"] == "v1" && object["kind"] == "Namespace";
        if is_namespace && let Some(name) = object["metadata"]["name"].as_str() {
            self.belonging.settle(name, outcome.is_ok());
        }
        if self.args.dry_run
            && let Ok(done) = &outcome
            && let Some(plan) = plan(*done)
        {
            writeln!(out, "{plan} {}", describe(object))?;
        }
        match outcome {
            Ok(Done::Created) => self.counts.created += 1,
            Ok(Done::Joined) => self.counts.joined += 1,
            Ok(Done::Present) => self.counts.present += 1,
            Ok(Done::Waiting) => self.counts.waiting += 1,
            Ok(Done::Undeclared) => self.counts.undeclared += 1,
            Err(error) => {
                self.counts.failed += 1;
                let so = if is_namespace { "; nothing is created in it" } else { "" };
                if is_namespace || self.counts.failed <= MAX_PRINTED {
                    note(&format!("{}: {error:#}{so}", describe(object)));
                }
            }
        }
        Ok(())
    }

    async fn create(&mut self, object: &Value) -> anyhow::Result<Done> {
        if is_declaration(object) && !self.args.with_declaration {
            return Ok(Done::Undeclared);
        }
        let (api, cluster, dry_run) = (self.api, &self.args.cluster, self.args.dry_run);
        let patience = if dry_run { Duration::ZERO } else { ESTABLISHED };
        let resource = match self.resource(object, patience).await {
            // The export has its definition.
            Err(_) if dry_run => {
                if !object["metadata"]["namespace"].is_null() {
                    self.belonging.check_namespace(object)?;
                }
                return Ok(Done::Created);
            }
            resource => resource?,
        };
        self.belonging.check(&resource, object)?;
        if let Some(why) = objection::to_own(&resource, object) {
            bail!("{why}, so it is not created");
        }
        if describes_pods(&resource, object) && !self.may_run_pods().await? {
            let is_missing = is_missing(api, &resource, object).await?;
            return Ok(if is_missing { Done::Waiting } else { Done::Present });
        }
        let prepared;
        let object = if resource.full_name() == "namespaces" {
            namespace::check_identity(object, self.identity)?;
            prepared = namespace::prepared(object);
            &prepared
        } else {
            object
        };
        if dry_run {
            preview(api, cluster, &resource, object).await
        } else {
            put(api, cluster, &resource, object).await
        }
    }

    /// Whether the admission policies bind pods to the nodes of the virtual cluster.
    async fn may_run_pods(&mut self) -> anyhow::Result<bool> {
        let policies = match self.policies {
            Some(policies) => policies,
            None => *self.policies.insert(Policies::read(self.api).await?),
        };
        Ok(match policies {
            Policies::InForce => true,
            Policies::Missing => false,
            Policies::Unserved => self.args.yes,
        })
    }

    /// Prints the result.
    fn finish(&self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let Counts { created, joined, present, waiting, undeclared, failed } = self.counts;
        let (cluster, dry_run) = (&self.args.cluster, self.args.dry_run);
        let would = if dry_run { "would be " } else { "" };
        writeln!(out, "{created} objects {would}created, {joined} changed, {present} already there, {failed} failed")?;
        if undeclared > 0 {
            note(&format!(
                "the file contains VirtualCluster {cluster}, which is not created; read its spec, and add --with-declaration \
                 to create it"
            ));
        }
        if waiting > 0 {
            let are_not = if dry_run { "would not be" } else { "are not" };
            note(&match self.policies {
                Some(Policies::Unserved) => format!(
                    "{waiting} workloads and custom resources {are_not} created: the host does not serve ValidatingAdmissionPolicies, so nothing \
                     binds their pods to the nodes of {cluster}; add --yes to create them all the same"
                ),
                _ => format!(
                    "{waiting} workloads and custom resources {are_not} created yet: the admission policies that bind their pods to the nodes of \
                     {cluster} are not in force; start the agent, which creates the policies, and run the same command again"
                ),
            });
        }
        if failed > 0 || (waiting > 0 && !dry_run) {
            return Ok(ExitCode::FAILURE);
        }
        if !dry_run && let Some(identity) = self.identity {
            writeln!(out, "{cluster} has the identity {identity} (the uid of its kube-system)")?;
        }
        Ok(ExitCode::SUCCESS)
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

/// What a dry run says about an object.
fn plan(done: Done) -> Option<&'static str> {
    match done {
        Done::Created => Some("create"),
        Done::Joined => Some("change"),
        Done::Waiting => Some("when the agent runs, create"),
        Done::Present | Done::Undeclared => None,
    }
}

fn is_declaration(object: &Value) -> bool {
    let group = declared::API_VERSION.split('/').next();
    object["kind"] == declared::KIND && object["apiVersion"].as_str().is_some_and(|it| it.split('/').next() == group)
}

/// `Kind NAMESPACE/NAME`.
fn describe(object: &Value) -> String {
    let metadata = &object["metadata"];
    let (kind, name) = (object["kind"].as_str(), metadata["name"].as_str().unwrap_or_default());
    let namespace = metadata["namespace"].as_str().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {namespace}{name}", kind.unwrap_or_default())
}

#[cfg(test)]
mod tests;
