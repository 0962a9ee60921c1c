//! The objects in a member: creates and removes them.
//!
//! Existing objects stay unchanged, as with `karmadactl join`: an administrator may have granted less.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ops::secret::Secret;
use protocol::ClusterName;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::api::{Api, ApiError, Route};
use super::objects::{self, IMPERSONATOR, NAMESPACE};

/// How often a Secret is read until the host has written a token, and the pause before each read.
const TOKEN_ATTEMPTS: u32 = 40;
const TOKEN_PAUSE: Duration = Duration::from_millis(250);

const NAMESPACES: &str = "/api/v1/namespaces";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// The credentials of Karmada in the member.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The token of Karmada's own account.
    pub token: Secret,
    /// The token of the account that impersonates Karmada's users.
    pub impersonator: Secret,
}

/// The member is not ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemberError {
    /// A call failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// `/readyz` does not pass.
    #[error("the cluster is not ready yet")]
    NotReady(#[source] ApiError),
    /// A required object is not valid.
    #[error("{0} has an unexpected format")]
    Form(&'static str),
    /// It was a member before, and its objects are being deleted.
    #[error("namespace {NAMESPACE} in the cluster is being deleted")]
    Leaving,
    /// The host's token controller has not written a token.
    #[error("the host has not written a token to Secret {NAMESPACE}/{0} yet")]
    NoToken(String),
}

/// The uid of the member's `kube-system`, once its API server is ready. Changes nothing.
pub async fn identify<R: Route>(api: &Api<R>) -> Result<String, MemberError> {
    api.check_health("/readyz").await.map_err(MemberError::NotReady)?;
    let system = api.get(&format!("{NAMESPACES}/kube-system")).await?;
    let id = system.pointer("/metadata/uid").and_then(Value::as_str).filter(|uid| !uid.is_empty());
    Ok(id.ok_or(MemberError::Form("namespace kube-system"))?.to_owned())
}

/// Creates what is missing.
pub async fn prepare<R: Route>(api: &Api<R>, name: &ClusterName) -> Result<Prepared, MemberError> {
    let namespace = ensure(api, NAMESPACES, NAMESPACE, &objects::namespace()).await?;
    if namespace.pointer("/metadata/deletionTimestamp").is_some() {
        return Err(MemberError::Leaving);
    }
    let account = objects::account(name);
    let accounts = format!("{NAMESPACES}/{NAMESPACE}/serviceaccounts");
    ensure(api, &accounts, IMPERSONATOR, &objects::service_account(IMPERSONATOR)).await?;
    ensure(api, &accounts, &account, &objects::service_account(&account)).await?;
    let role = objects::role(name);
    ensure(api, &format!("{RBAC}/clusterroles"), &role, &objects::cluster_role(name)).await?;
    ensure(api, &format!("{RBAC}/clusterrolebindings"), &role, &objects::cluster_role_binding(name)).await?;
    let impersonator = token(api, IMPERSONATOR).await?;
    let token = token(api, &account).await?;
    Ok(Prepared { token, impersonator })
}

/// Removes what [`prepare`] created. The namespace is deleted with its objects, in the background.
pub async fn clean<R: Route>(api: &Api<R>, name: &ClusterName) -> Result<(), ApiError> {
    let role = objects::role(name);
    api.delete(&format!("{RBAC}/clusterrolebindings/{role}"), &json!({})).await?;
    api.delete(&format!("{RBAC}/clusterroles/{role}"), &json!({})).await?;
    let account = objects::account(name);
    api.delete(&format!("{NAMESPACES}/{NAMESPACE}/serviceaccounts/{account}"), &json!({})).await?;
    api.delete(&format!("{NAMESPACES}/{NAMESPACE}"), &json!({})).await
}

/// The existing object, or a new one.
pub(super) async fn ensure<R: Route>(
    api: &Api<R>,
    collection: &str,
    name: &str,
    object: &Value,
) -> Result<Value, ApiError> {
    let path = format!("{collection}/{name}");
    if let Some(there) = api.find(&path).await? {
        return Ok(there);
    }
    match api.create(collection, object).await {
        // Another proxy-server or karmadactl has created it.
        Err(error) if error.is_conflict() => api.get(&path).await,
        made => made,
    }
}

async fn token<R: Route>(api: &Api<R>, account: &str) -> Result<Secret, MemberError> {
    let secrets = format!("{NAMESPACES}/{NAMESPACE}/secrets");
    for _ in 0..TOKEN_ATTEMPTS {
        let secret = ensure(api, &secrets, account, &objects::token_secret(account)).await?;
        if secret["type"] != "kubernetes.io/service-account-token" {
            return Err(MemberError::Form("the Secret of a service account of Karmada"));
        }
        if let Some(encoded) = secret.pointer("/data/token").and_then(Value::as_str) {
            let token = STANDARD.decode(encoded).ok().and_then(|token| String::from_utf8(token).ok());
            return token.map(Secret::from).ok_or(MemberError::Form("the token of a service account"));
        }
        sleep(TOKEN_PAUSE).await;
    }
    Err(MemberError::NoToken(account.to_owned()))
}
