//! The manifests that make a virtual cluster a member of Karmada.
//!
//! A proxy-server with `karmada` in its configuration applies the same manifests itself, with the same code. The
//! virtual cluster issues the tokens, so this command requests them as an administrator of the virtual cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use ::kubeconfig::client_config::KeyPair;
use ::kubeconfig::{ClientConfig, Material};
use anyhow::{Context as _, ensure};
use ops::drain::Tasks;
use ops::files::{Reloader, Watched};
use ops::pki::{Authority, only_certificates};
use ops::secret::Secret;
use protocol::registration::Mode;
use proxy_server::ProxyServerConfiguration;
use proxy_server::config::Cluster;
use proxy_server::karmada::Member;
use proxy_server::karmada::api::{Api, Direct};
use proxy_server::karmada::member::{self, MemberError};
use proxy_server::karmada::objects::{self, Credentials};
use serde_json::Value;

use super::addresses;
use super::args::Args;
use super::virtual_cluster::{authority, read};

/// The lifetime of the administrator's certificate, which exists only in memory.
const LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Prepares the cluster and renders the manifests for Karmada.
pub(super) fn manifests(args: &Args) -> anyhow::Result<String> {
    let config = addresses::server_config(args)?.context("--server-config is required")?;
    let cluster = addresses::cluster(args, &config)?;
    ensure!(
        cluster.mode == Mode::Virtual,
        "{0} is a physical cluster: join it with `karmadactl join` and a kubeconfig that `atoll kubeconfig {0} \
         --physical-from FILE` created",
        args.cluster
    );
    let member = describe(args, &config)?;
    let serving_ca = only_certificates(&read(&config.serving_ca.certificate)?).context("servingCA")?;
    let client_config = administrator(args, &config, cluster, &serving_ca)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let prepared = runtime.block_on(async {
        let direct = Direct::new(Watched::fixed(client_config), Reloader::new(Reloader::DEFAULT_PERIOD), Tasks::new());
        let api = Api::new(direct);
        let id = member::identify(&api).await?;
        Ok::<_, MemberError>((id, member::prepare(&api, &args.cluster).await?))
    });
    let (id, member::Prepared { token, impersonator }) =
        prepared.with_context(|| format!("cannot prepare cluster {}", args.cluster))?;
    let credentials = Credentials { id, token, impersonator, authority: serving_ca };
    render(&member, &credentials)
}

fn render(member: &Member, credentials: &Credentials) -> anyhow::Result<String> {
    let [impersonator, own] = objects::secrets(&member.name, credentials, None);
    let documents: [Value; 4] = [objects::namespace(), impersonator, own, member.cluster(&credentials.id)];
    let render = |document: &Value| {
        serde_saphyr::to_string_with_options(document, serde_saphyr::ser_options! { prefer_block_scalars: false })
    };
    Ok(documents.iter().map(render).collect::<Result<Vec<_>, _>>()?.join("---\n"))
}

/// The member as in section `karmada` of the configuration. Without that section, or with flags for addresses, it has
/// only addresses.
fn describe(args: &Args, config: &ProxyServerConfiguration) -> anyhow::Result<Member> {
    let name = &args.cluster;
    let configured = config.karmada.as_ref().map(|karmada| Member::of(karmada, name, &config.domain));
    if let Some(member) = configured
        && !args.direct
        && args.server.is_none()
        && args.proxy_url.is_none()
    {
        return Ok(member);
    }
    ensure!(
        name.as_str().len() <= objects::LONGEST_NAME,
        "names of clusters in Karmada have at most {} characters",
        objects::LONGEST_NAME
    );
    Ok(Member {
        name: name.clone(),
        kept_by: None,
        api_endpoint: addresses::server(args, config)?,
        proxy_url: if args.direct { None } else { Some(addresses::proxy_url(args, Some(config))?) },
        proxy_header: BTreeMap::new(),
        labels: BTreeMap::new(),
        provider: None,
        region: None,
        zones: Vec::new(),
    })
}

/// How this process connects to the virtual cluster, as an administrator.
fn administrator(
    args: &Args,
    config: &ProxyServerConfiguration,
    cluster: &Cluster,
    serving_ca: &str,
) -> anyhow::Result<ClientConfig> {
    let server = if args.direct { addresses::server(args, config)? } else { addresses::endpoint(args, config)? };
    let authority: Authority = authority(&args.cluster, cluster)?;
    let pair = authority.issue_client("admin", &["system:masters"], LIFETIME)?;
    Ok(ClientConfig {
        server: server.parse().context("the URL of the endpoint")?,
        server_name: None,
        authorities: Material::Inline(Secret::from(serving_ca)),
        identity: Some(KeyPair {
            certificate: Material::Inline(Secret::from(pair.certificate)),
            key: Material::Inline(pair.key),
        }),
        token: None,
    })
}
