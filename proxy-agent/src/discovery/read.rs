//! Reads the host's discovery: in the aggregated form (KEP-3352, beta in 1.27), or else group by group.

use std::collections::HashSet;

use http::{Request, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::resources::{Resource, Resources};
use host_client::api::HostApi as _;
use host_client::api::{Api, ApiError};
use host_client::collect::collect;
use host_client::{Host, HostError, empty};
use virtual_cluster::shared::DEFINITIONS;

/// The maximum length of a document, in bytes. A cluster with a thousand CRDs has about 2 MB. One virtual cluster can add up to
/// 3.5 MB: 200 definitions of 10 versions, each with 20 names of 63 characters.
const MAX: usize = 32 * 1024 * 1024;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Discovery failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoveryError {
    /// The host did not respond.
    #[error("discovery of the host failed")]
    Host(#[from] HostError),
    /// The definitions could not be listed.
    #[error("discovery of the host failed")]
    Api(#[from] ApiError),
    /// The host did not respond in time.
    #[error("discovery of the host failed: the host did not answer in time")]
    Timeout,
    /// The host has no such document.
    #[error("discovery of the host failed: it has none")]
    Missing,
    /// The response is invalid.
    #[error("discovery of the host failed: {0}")]
    Answer(String),
}

/// The used fields of `APIGroupDiscoveryList` (apidiscovery.k8s.io).
#[derive(Deserialize)]
struct Groups {
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Discovered>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    resource: String,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    response_kind: Option<Kind>,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

/// `APIVersions` and `APIGroupList` (meta/v1).
#[derive(Deserialize)]
struct Legacy {
    #[serde(default)]
    versions: Vec<String>,
    #[serde(default)]
    groups: Vec<LegacyGroup>,
}

#[derive(Deserialize)]
struct LegacyGroup {
    name: String,
    versions: Vec<LegacyVersion>,
}

#[derive(Deserialize)]
struct LegacyVersion {
    version: String,
}

/// `APIResourceList` (meta/v1).
#[derive(Deserialize)]
struct LegacyResources {
    resources: Vec<LegacyResource>,
}

#[derive(Deserialize)]
struct LegacyResource {
    name: String,
    namespaced: bool,
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
}

/// Reads everything that the host serves.
pub(super) async fn read(host: &Host) -> Result<Resources, DiscoveryError> {
    let mut resources = Resources::default();
    let custom = definitions(host).await?;
    for root in ["/api", "/apis"] {
        let (aggregated, body) = get(host, root, AGGREGATED).await?;
        if aggregated {
            let groups: Groups = parse(&body)?;
            for group in groups.items {
                add(&mut resources, &group, &custom);
            }
            continue;
        }
        let legacy: Legacy = parse(&body)?;
        let core = legacy.versions.into_iter().map(|version| (String::new(), version));
        let named = legacy.groups.into_iter().flat_map(|group| {
            let versions = group.versions.into_iter();
            versions.map(move |version| (group.name.clone(), version.version)).collect::<Vec<_>>()
        });
        for (group, version) in core.chain(named) {
            let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
            // An aggregated API whose server is down must not hide all others.
            let Ok((_, body)) = get(host, &path, "application/json").await else { continue };
            let list: LegacyResources = parse(&body)?;
            for found in list.resources.into_iter().filter(|found| !found.name.contains('/')) {
                let custom = is_custom(&custom, &group, &found.name);
                let stored = is_stored(&found.verbs);
                let resource = Resource { kind: found.kind, namespaced: found.namespaced, custom, stored };
                resources.insert(&group, &version, &found.name, resource);
            }
        }
    }
    Ok(resources)
}

/// The names of the CustomResourceDefinitions: `plural.group`.
async fn definitions(host: &Host) -> Result<HashSet<String>, DiscoveryError> {
    let mut names = HashSet::new();
    let api = Api::new(host.clone());
    match api.each(DEFINITIONS, "", |definition| _ = names.insert(definition.metadata.name)).await {
        Ok(()) => Ok(names),
        // The host does not serve them.
        Err(error) if error.is_not_found() => Ok(HashSet::new()),
        Err(error) => Err(error.into()),
    }
}

fn is_custom(definitions: &HashSet<String>, group: &str, resource: &str) -> bool {
    !group.is_empty() && definitions.contains(&format!("{resource}.{group}"))
}

/// Reviews cannot be listed, and metrics cannot be created.
fn is_stored(verbs: &[String]) -> bool {
    ["create", "list", "watch"].iter().all(|verb| verbs.iter().any(|it| it == verb))
}

fn add(resources: &mut Resources, group: &Group, definitions: &HashSet<String>) {
    for version in &group.versions {
        for found in &version.resources {
            let kind = found.response_kind.as_ref().map(|kind| kind.kind.clone()).unwrap_or_default();
            let custom = is_custom(definitions, &group.metadata.name, &found.resource);
            let stored = is_stored(&found.verbs);
            let resource = Resource { kind, namespaced: found.scope == "Namespaced", custom, stored };
            resources.insert(&group.metadata.name, &version.version, &found.resource, resource);
        }
    }
}

async fn get(host: &Host, path: &str, accept: &str) -> Result<(bool, bytes::Bytes), DiscoveryError> {
    let request = Request::get(path)
        .header(header::ACCEPT, accept)
        .body(empty())
        // The host determines the names of groups and versions.
        .map_err(|error| DiscoveryError::Answer(error.to_string()))?;
    let response = host.send(request).await?;
    if response.status() == StatusCode::NOT_FOUND {
        return Err(DiscoveryError::Missing);
    }
    if response.status() != StatusCode::OK {
        return Err(DiscoveryError::Answer(format!("GET {path} is {}", response.status())));
    }
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let aggregated = content_type
        .is_some_and(|value| value.as_bytes().windows(b"apidiscovery".len()).any(|window| window == b"apidiscovery"));
    let body = collect(response.into_body(), MAX).await;
    Ok((aggregated, body.map_err(|error| DiscoveryError::Answer(error.to_string()))?))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, DiscoveryError> {
    serde_json::from_slice(body).map_err(|error| DiscoveryError::Answer(error.to_string()))
}
