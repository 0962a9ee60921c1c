//! Who issues kubeconfigs.

use std::future::Future;

use ops::date::Moment;
use ops::secret::Secret;
use protocol::ClusterName;
use protocol::user_certificate::User;

use super::failure::IssueError;

/// Issues kubeconfigs.
pub trait Issuer: Send + Sync + 'static {
    /// When this agent enrolled. Revoking the agent also revokes the certificates that it requested before it enrolled again.
    fn enrolled(&self) -> Moment;

    /// A kubeconfig for a user of the cluster.
    fn issue(&self, cluster: &ClusterName, user: &User) -> impl Future<Output = Result<Issued, IssueError>> + Send;
}

/// A kubeconfig with a new certificate.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The file.
    pub kubeconfig: Secret,
    /// From when on the certificate should be renewed.
    pub renewal: Moment,
    /// When it expires.
    pub expiry: Moment,
}
