//! kube-rs against a cluster, as controllers in Rust use it.
//!
//! It knows nothing of virtual clusters and runs against a plain cluster as well: what fails there is a mistake of its
//! own. It works in one namespace, which it makes and deletes. For each check it prints one line, "ok NAME (TIME)" or
//! "FAILED NAME: WHY", and it exits 1 if any failed.

mod objects;
mod streams;
mod watches;

use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, Client, Config, ResourceExt};

/// How long one check may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Uses a cluster by kube-rs in every form, and says of each whether it works.
#[derive(Parser)]
struct Arguments {
    /// The cluster.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
}

/// What the checks share; each works with objects of its own.
struct World {
    client: Client,
    namespace: String,
}

type Check = for<'a> fn(&'a World) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

const CHECKS: &[(&str, Check)] = &[
    ("discovery", |world| Box::pin(objects::discovery(world))),
    ("typed", |world| Box::pin(objects::typed(world))),
    ("dynamic", |world| Box::pin(objects::dynamic(world))),
    ("apply", |world| Box::pin(objects::apply(world))),
    ("errors", |world| Box::pin(objects::errors(world))),
    ("deployment", |world| Box::pin(objects::deployment(world))),
    ("watcher/streaming-list", |world| Box::pin(watches::streaming_list(world))),
    ("watcher/list-and-watch", |world| Box::pin(watches::list_and_watch(world))),
    ("watcher/metadata", |world| Box::pin(watches::metadata(world))),
    ("reflector", |world| Box::pin(watches::reflector(world))),
    ("exec", |world| Box::pin(streams::exec(world))),
    ("port-forward", |world| Box::pin(streams::port_forward(world))),
    ("logs", |world| Box::pin(streams::logs(world))),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_failed) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<usize> {
    let file = Kubeconfig::read_from(&arguments.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let namespace = format!("kube-rs-{:05}", fastrand::u32(..100_000));
    let world = World { client, namespace };
    let uid = world.arrive().await?;
    let mut failed = 0;
    for (name, check) in CHECKS {
        let begun = Instant::now();
        let result = match tokio::time::timeout(LIMIT, check(&world)).await {
            Ok(result) => result,
            Err(_elapsed) => Err(anyhow::anyhow!("it took longer than {LIMIT:?}")),
        };
        match result {
            Ok(()) => println!("ok {name} ({} ms)", begun.elapsed().as_millis()),
            Err(error) => {
                println!("FAILED {name}: {error:#}");
                failed += 1;
            }
        }
    }
    world.leave(&uid).await?;
    Ok(failed)
}

impl World {
    /// Makes the namespace and waits until pods can be made in it; the result is its UID.
    async fn arrive(&self) -> anyhow::Result<String> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let body = serde_json::from_value(serde_json::json!({"metadata": {"name": self.namespace}}))?;
        let made: Namespace = namespaces.create(&PostParams::default(), &body).await?;
        let accounts: Api<ServiceAccount> = self.api();
        tokio::time::timeout(LIMIT, await_condition(accounts, "default", conditions::is_created())).await??;
        made.uid().context("a namespace without a UID")
    }

    /// Deletes the namespace and waits until nothing is left of it.
    async fn leave(&self, uid: &str) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.delete(&self.namespace, &DeleteParams::default()).await?;
        let gone = await_condition(namespaces, &self.namespace, conditions::is_deleted(uid));
        tokio::time::timeout(LIMIT, gone).await.context("the namespace is still there")??;
        Ok(())
    }

    /// The objects of one kind in the namespace of the checks.
    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}
