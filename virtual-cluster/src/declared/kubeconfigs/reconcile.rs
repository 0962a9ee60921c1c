//! Makes the Secret of one VirtualCluster what the object asks for.

use std::sync::Arc;

use host_client::api::{ApiError, HostApi, Partial};
use ops::date::Moment;
use ops::log::chain;
use protocol::ClusterName;
use rewrite::name::{CLUSTER_LABEL, ROOT_LABEL};
use serde::de::IgnoredAny;
use serde_json::json;
use tracing::info;

use super::failure::{IssueError, Reason};
use super::issuer::Issuer;
use super::secret::{self, KubeconfigSecret, Wanted, secret};
use super::state::KubeconfigState;
use super::step::{Step, step};
use crate::declared::object::Declared;
use crate::namespaces;

/// The host, the issuer, and the namespace of the Secrets.
#[derive(Debug)]
pub(super) struct Reconcile<A, I> {
    pub(super) api: A,
    pub(super) issuer: I,
    pub(super) namespace: Arc<str>,
}

/// What was done about an object.
#[derive(Debug)]
pub(super) enum Done {
    /// It asks for no kubeconfig.
    Nothing,
    /// The virtual cluster is not ready. The condition Ready says why.
    NotReady,
    /// The Secret is right until this time.
    Kept {
        state: KubeconfigState,
        renewal: Moment,
    },
    Written(KubeconfigState),
}

// === impl Reconcile ===

impl<A: HostApi, I: Issuer> Reconcile<A, I> {
    /// Compares what the object asks for with the Secret that the watch has found.
    pub(super) async fn reconcile(
        &self,
        object: &Declared,
        wanted: Option<Wanted<'_>>,
        found: Option<&KubeconfigSecret>,
    ) -> Result<Done, IssueError> {
        match step(object, wanted, found, Moment::now()) {
            Step::Nothing => Ok(Done::Nothing),
            Step::Keep { renewal, expiry } => Ok(Done::Kept { state: self.issued(object, expiry), renewal }),
            Step::Foreign => Err(self.conflict(object)),
            Step::Delete { uid } => self.delete(object, uid).await.map(|()| Done::Nothing),
            Step::Issue(wanted) => self.store(object, &wanted, found).await,
        }
    }

    /// Issues a kubeconfig, and stores it.
    async fn store(
        &self,
        object: &Declared,
        wanted: &Wanted<'_>,
        found: Option<&KubeconfigSecret>,
    ) -> Result<Done, IssueError> {
        let cluster = &object.metadata.name;
        // A cluster that is not ready, or whose specification is invalid, may be ready soon. Its kubeconfig must not expire.
        let is_time = |_: &ClusterName| found.is_some() || object.status().is_ready();
        let Some(named) = cluster.parse::<ClusterName>().ok().filter(is_time) else { return Ok(Done::NotReady) };
        if self.is_of_a_cluster().await? {
            let message = format!(
                "{} belongs to a virtual cluster: choose another kubeconfigNamespace in the configuration of the agent",
                self.namespace
            );
            return Err(IssueError::new(Reason::NamespaceOfCluster, message));
        }
        // Another replica of the agent may have been faster, or somebody may have removed the label, so the watch does not find it.
        let unseen = if found.is_none() { self.read(object).await? } else { None };
        if let Some(unseen) = &unseen {
            match step(object, Some(*wanted), Some(unseen), Moment::now()) {
                Step::Keep { renewal, expiry } if unseen.is_labelled() => {
                    return Ok(Done::Kept { state: self.issued(object, expiry), renewal });
                }
                Step::Foreign => return Err(self.conflict(object)),
                _ => {}
            }
        }
        let issued = self.issuer.issue(&named, wanted.user).await?;
        let mut stored = secret(object, &self.namespace, wanted, &issued);
        let path = secret::path(&self.namespace);
        let written = match found.or(unseen.as_ref()) {
            Some(found) => {
                // Another Secret with this name would have another uid, so this cannot write to one.
                stored["metadata"]["uid"] = found.metadata.uid.clone().into();
                let path = format!("{path}/{}?fieldManager=proxy-agent&force=true", secret::name(cluster));
                self.api.apply(&path, &stored).await
            }
            None => self.api.create(&format!("{path}?fieldManager=proxy-agent"), &stored).await,
        };
        written.map_err(|error| failed("cannot write the Secret", &error))?;
        let (user, expires) = (&wanted.user.name, issued.expiry);
        info!(virtual_cluster = cluster, namespace = %self.namespace, user, %expires, "stored a kubeconfig");
        Ok(Done::Written(self.issued(object, issued.expiry)))
    }

    /// Whether the namespace belongs to a virtual cluster of this agent, or of another one.
    async fn is_of_a_cluster(&self) -> Result<bool, IssueError> {
        let read = self.api.read::<Partial>(&format!("{}/{}", namespaces::PATH, self.namespace)).await;
        let found = read.map_err(|error| failed("cannot read the namespace", &error))?;
        Ok([CLUSTER_LABEL, ROOT_LABEL].iter().any(|label| found.metadata.labels.contains_key(*label)))
    }

    /// The Secret with the name, whoever has created it.
    async fn read(&self, object: &Declared) -> Result<Option<KubeconfigSecret>, IssueError> {
        match self.api.read(&self.path(object)).await {
            Err(error) if error.is_not_found() => Ok(None),
            read => read.map(Some).map_err(|error| failed("cannot read the Secret", &error)),
        }
    }

    async fn delete(&self, object: &Declared, uid: &str) -> Result<(), IssueError> {
        let options = json!({"preconditions": {"uid": uid}});
        match self.api.delete::<IgnoredAny>(&self.path(object), &options).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            deleted => deleted.map(drop).map_err(|error| failed("cannot delete the Secret", &error)),
        }
    }

    fn path(&self, object: &Declared) -> String {
        format!("{}/{}", secret::path(&self.namespace), secret::name(&object.metadata.name))
    }

    fn issued(&self, object: &Declared, expiry: Moment) -> KubeconfigState {
        let name = secret::name(&object.metadata.name);
        KubeconfigState::Issued { namespace: Arc::clone(&self.namespace), name, expiry }
    }

    fn conflict(&self, object: &Declared) -> IssueError {
        let (namespace, name) = (&self.namespace, secret::name(&object.metadata.name));
        let message =
            format!("Secret {namespace}/{name} exists, and does not belong to this VirtualCluster: delete it");
        IssueError::new(Reason::NameConflict, message)
    }
}

fn failed(what: &str, error: &ApiError) -> IssueError {
    IssueError::new(Reason::Failed, format!("{what}: {}", chain(error)))
}
