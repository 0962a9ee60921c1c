//! Why a VirtualCluster has no kubeconfig.

/// The reason of the condition `KubeconfigIssued`, for programs. docs/virtualclusters.md says what the operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The configuration of the agent names no namespace for the Secret.
    NoNamespace,
    /// The namespace belongs to a virtual cluster, whose clients could read the Secret.
    NamespaceOfCluster,
    /// A Secret with the name does not belong to the VirtualCluster.
    NameConflict,
    /// A proxy-server issues no certificate.
    RefusedByProxyServer,
    /// No proxy-server answers.
    Unavailable,
    /// The host refuses a request of the agent.
    Failed,
}

/// Why there is no kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct IssueError {
    /// For programs.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

// === impl Reason ===

impl Reason {
    /// The word in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoNamespace => "NoNamespace",
            Self::NamespaceOfCluster => "NamespaceOfCluster",
            Self::NameConflict => "NameConflict",
            Self::RefusedByProxyServer => "RefusedByProxyServer",
            Self::Unavailable => "Unavailable",
            Self::Failed => "Failed",
        }
    }
}

// === impl IssueError ===

impl IssueError {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}
