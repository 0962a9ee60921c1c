//! Requests for one object or one list.

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::Discovery;
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::World;

pub(crate) async fn discovery(world: &World) -> anyhow::Result<()> {
    let found = Discovery::new(world.client.clone()).run().await?;
    let apps = found.get("apps").context("no group apps")?;
    let (deployments, able) = apps.recommended_kind("Deployment").context("no kind Deployment")?;
    ensure!(deployments.plural == "deployments" && able.supports_operation("watch"), "{deployments:?}");
    let version = world.client.apiserver_version().await?;
    ensure!(version.major == "1", "{version:?}");
    Ok(())
}

pub(crate) async fn typed(world: &World) -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = world.api();
    let body: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "typed"}, "data": {"key": "one"}}))?;
    let made = maps.create(&PostParams::default(), &body).await?;
    ensure!(made.namespace().as_deref() == Some(world.namespace.as_str()), "{made:?}");
    let mut changed = maps.get("typed").await?;
    changed.data.get_or_insert_default().insert("key".into(), "two".into());
    let replaced = maps.replace("typed", &PostParams::default(), &changed).await?;
    ensure!(replaced.uid() == made.uid() && replaced.resource_version() != made.resource_version(), "{replaced:?}");
    let merge = Patch::Merge(json!({"data": {"more": "three"}}));
    let patched = maps.patch("typed", &PatchParams::default(), &merge).await?;
    ensure!(patched.data.as_ref().is_some_and(|data| data.len() == 2), "{patched:?}");
    let all = maps.list(&ListParams::default().fields("metadata.name=typed")).await?;
    ensure!(all.items.len() == 1 && all.items.first() == Some(&patched), "{all:?}");
    maps.delete("typed", &DeleteParams::default()).await?;
    ensure!(maps.get_opt("typed").await?.is_none(), "it is still there");
    // A list of all namespaces contains the namespace under its own name.
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let names: Vec<String> = namespaces.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
    ensure!(names.contains(&world.namespace), "{names:?}");
    Ok(())
}

pub(crate) async fn dynamic(world: &World) -> anyhow::Result<()> {
    let kind = ApiResource::erase::<ConfigMap>(&());
    let maps: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), &world.namespace, &kind);
    let body = DynamicObject::new("dynamic", &kind).data(json!({"data": {"key": "value"}}));
    let made = maps.create(&PostParams::default(), &body).await?;
    let listed = maps.list(&ListParams::default().limit(1)).await?;
    ensure!(listed.items.len() == 1, "{listed:?}");
    let read = maps.get("dynamic").await?;
    ensure!(read == made, "{made:?} was made, and {read:?} read");
    maps.delete("dynamic", &DeleteParams::default()).await?;
    Ok(())
}

pub(crate) async fn apply(world: &World) -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = world.api();
    let body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"key": "one"}});
    let applied = maps.patch("applied", &PatchParams::apply("kube-rs"), &Patch::Apply(&body)).await?;
    let again = maps.patch("applied", &PatchParams::apply("kube-rs"), &Patch::Apply(&body)).await?;
    ensure!(applied.resource_version() == again.resource_version(), "applying the same changed it");
    let other =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"key": "two"}});
    match maps.patch("applied", &PatchParams::apply("another"), &Patch::Apply(&other)).await {
        Err(kube::Error::Api(status)) => ensure!(status.is_conflict(), "{status:?}"),
        other => bail!("two managers of one field: {other:?}"),
    }
    let forced = maps.patch("applied", &PatchParams::apply("another").force(), &Patch::Apply(&other)).await?;
    ensure!(forced.managed_fields().len() == 1, "{:?}", forced.managed_fields());
    Ok(())
}

pub(crate) async fn errors(world: &World) -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = world.api();
    match maps.get("missing").await {
        Err(kube::Error::Api(status)) => {
            ensure!(status.is_not_found() && status.message == r#"configmaps "missing" not found"#, "{status:?}");
        }
        other => bail!("{other:?}"),
    }
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let again = serde_json::from_value(json!({"metadata": {"name": world.namespace}}))?;
    match namespaces.create(&PostParams::default(), &again).await {
        Err(kube::Error::Api(status)) => ensure!(
            status.is_already_exists()
                && status.message == format!("namespaces \"{}\" already exists", world.namespace),
            "{status:?}"
        ),
        other => bail!("{other:?}"),
    }
    Ok(())
}

pub(crate) async fn deployment(world: &World) -> anyhow::Result<()> {
    let deployments: Api<Deployment> = world.api();
    let body = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}},
    }}))?;
    let made: Deployment = deployments.create(&PostParams::default(), &body).await?;
    let selector = made.spec.and_then(|spec| spec.template.spec).and_then(|pod| pod.node_selector);
    ensure!(selector.is_none(), "a selector that nobody wrote: {selector:?}");
    await_condition(deployments.clone(), "web", conditions::is_deployment_completed()).await?;
    let pods: Api<Pod> = world.api();
    let running = pods.list(&ListParams::default().labels("app=web")).await?;
    ensure!(running.items.len() == 2, "{} pods", running.items.len());
    let mut scale = deployments.get_scale("web").await?;
    scale.spec.get_or_insert_default().replicas = Some(1);
    deployments.replace_scale("web", &PostParams::default(), &scale).await?;
    await_condition(deployments, "web", |web: Option<&Deployment>| {
        web.and_then(|web| web.status.as_ref()).is_some_and(|status| status.replicas == Some(1))
    })
    .await?;
    Ok(())
}
