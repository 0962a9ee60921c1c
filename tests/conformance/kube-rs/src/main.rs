//! Checks kube-rs with a cluster.
//!
//! The program does not know whether the cluster is virtual. A check that fails on a plain cluster is wrong. The
//! program creates one namespace, and deletes it at the end. It prints one line for each check, "ok NAME (TIME)" or
//! "FAILED NAME: REASON", and exits with 1 if a check has failed.

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

/// The time limit of a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// Check kube-rs with a cluster.
#[derive(Parser)]
struct Arguments {
    /// The kubeconfig of the cluster.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
}

/// The shared state of the checks. Each check has its own objects.
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
    let uid = world.create_namespace().await?;
    let mut failed = 0;
    for (name, check) in CHECKS {
        let start = Instant::now();
        let result = match tokio::time::timeout(CHECK_TIMEOUT, check(&world)).await {
            Ok(result) => result,
            Err(_elapsed) => Err(anyhow::anyhow!("it took longer than {CHECK_TIMEOUT:?}")),
        };
        match result {
            Ok(()) => println!("ok {name} ({} ms)", start.elapsed().as_millis()),
            Err(error) => {
                println!("FAILED {name}: {error:#}");
                failed += 1;
            }
        }
    }
    world.delete_namespace(&uid).await?;
    Ok(failed)
}

impl World {
    /// Creates the namespace, and waits until pods can be created in it. Returns its UID.
    async fn create_namespace(&self) -> anyhow::Result<String> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let body = serde_json::from_value(serde_json::json!({"metadata": {"name": self.namespace}}))?;
        let made: Namespace = namespaces.create(&PostParams::default(), &body).await?;
        let accounts: Api<ServiceAccount> = self.api();
        tokio::time::timeout(CHECK_TIMEOUT, await_condition(accounts, "default", conditions::is_created())).await??;
        made.uid().context("the namespace has no UID")
    }

    /// Deletes the namespace, and waits until it is gone.
    async fn delete_namespace(&self, uid: &str) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.delete(&self.namespace, &DeleteParams::default()).await?;
        let gone = await_condition(namespaces, &self.namespace, conditions::is_deleted(uid));
        tokio::time::timeout(CHECK_TIMEOUT, gone).await.context("the namespace still exists")??;
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
