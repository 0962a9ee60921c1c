//! The kubeconfig of a virtual cluster, with new credentials.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeconfig::{Document, certificate_user, data};
use ops::config::FilePath;
use ops::pki::{Authority, only_certificates};
use protocol::ClusterName;
use protocol::registration::Mode;
use proxy_server::config::{Cluster, Revocation};
use serde_json::{Map, Value, json};

use super::addresses;
use super::args::Args;
use crate::invocation::Invocation;
use crate::revocation_list;

/// Issues the credentials and renders the kubeconfig.
pub(super) fn kubeconfig(args: &Args) -> anyhow::Result<String> {
    let config = addresses::server_config(args)?.context("--server-config is required")?;
    let cluster = addresses::cluster(args, &config)?;
    if cluster.mode == Mode::Physical {
        bail!(
            "{0} is a physical cluster: its API server authenticates its own clients, so this command cannot issue \
             credentials; add the proxy to a kubeconfig that works at the site: atoll kubeconfig {0} --physical-from \
             FILE --server-config ...",
            args.cluster
        );
    }
    let serving_ca = only_certificates(&read(&config.serving_ca.certificate)?).context("servingCA")?;

    let mut entry = Map::new();
    entry.insert("server".to_owned(), addresses::server(args, &config)?.into());
    entry.insert("certificate-authority-data".to_owned(), data(serving_ca.as_bytes()));
    if !args.direct {
        entry.insert("proxy-url".to_owned(), addresses::proxy_url(args, Some(&config))?.into());
    }
    let user = match &args.token {
        Some(token) => bearer(token)?,
        None if args.oidc => plugin(args, cluster)?,
        None => certificate(args, cluster, config.revocations.as_deref())?,
    };
    let document = Document { name: args.cluster.to_string(), cluster: entry, user, namespace: None };
    Ok(document.to_yaml()?)
}

fn bearer(token: &str) -> anyhow::Result<Map<String, Value>> {
    // RFC 6750, section 2.1, allows fewer characters. This check finds copying errors, such as line breaks.
    ensure!(
        !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()),
        "--token is empty, or has characters that no bearer token has"
    );
    Ok(Map::from_iter([("token".to_owned(), token.into())]))
}

/// The user is whoever logs in (`k8s.io/client-go/tools/clientcmd/api/v1`, ExecConfig).
fn plugin(args: &Args, cluster: &Cluster) -> anyhow::Result<Map<String, Value>> {
    let oidc = cluster
        .oidc
        .as_ref()
        .with_context(|| format!("cluster {} has no `oidc` in the configuration", args.cluster))?;
    let client_id = args.oidc_client_id.as_ref().or(oidc.issuer.audiences.first()).context("there is no audience")?;
    ensure!(
        oidc.issuer.audiences.contains(client_id),
        "--oidc-client-id must be one of the audiences of the cluster: {}",
        oidc.issuer.audiences.join(", ")
    );
    let mut command = Invocation::current().typed().split(' ');
    let program = command.next().context("there is no program")?;
    let mut words: Vec<String> = command.map(str::to_owned).collect();
    words.extend(["login".to_owned(), format!("--issuer-url={}", oidc.issuer.url.url())]);
    words.push(format!("--client-id={client_id}"));
    if let Some(path) = &oidc.issuer.certificate_authority {
        let pem = only_certificates(&read(path)?).context("oidc.issuer.certificateAuthority")?;
        words.push(format!("--certificate-authority-data={}", STANDARD.encode(pem)));
    }
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": program,
        "args": words,
        "env": null,
        // It never reads standard input, so `kubectl apply -f -` works.
        "interactiveMode": "Never",
        "installHint": "Install the command `atoll` on the PATH.",
        "provideClusterInfo": false,
    });
    Ok(Map::from_iter([("exec".to_owned(), exec)]))
}

fn certificate(args: &Args, cluster: &Cluster, revocations: Option<&FilePath>) -> anyhow::Result<Map<String, Value>> {
    let authority = authority(&args.cluster, cluster)?;
    let administrators = args.admin.then_some("system:masters");
    let groups: Vec<&str> = administrators.into_iter().chain(args.groups.iter().map(String::as_str)).collect();
    let user = args.user.as_deref().unwrap_or("admin");
    ensure!(!user.is_empty(), "--user is empty");
    let is_of_user = |revocation: &Revocation| {
        revocation.cluster.as_ref() == Some(&args.cluster) && revocation.user.as_deref() == Some(user)
    };
    let not_before = revocations.map(|path| revocation_list::not_before(path, is_of_user)).transpose()?;
    let not_before = not_before.unwrap_or(SystemTime::UNIX_EPOCH);
    let pair = authority.issue_client_after(user, &groups, args.lifetime.get(), not_before)?;
    Ok(certificate_user(pair.certificate.as_bytes(), pair.key.expose().as_bytes()))
}

/// The client CA of the cluster.
pub(super) fn authority(name: &ClusterName, cluster: &Cluster) -> anyhow::Result<Authority> {
    let ca = cluster.client_ca.as_ref().with_context(|| format!("cluster {name} has no clientCA"))?;
    let key = ca.key.as_ref().with_context(|| {
        format!("cluster {name} has no clientCA.key in the configuration; the key is required to issue certificates")
    })?;
    Authority::from_pem(&read(&ca.certificate)?, &read(key)?).with_context(|| format!("clientCA of cluster {name}"))
}

pub(super) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
