//! The questions to the host while a request is planned.

/// One question, in host names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// Whether a user may do something (SubjectAccessReview).
    Access {
        /// The user.
        user: String,
        /// The verb.
        verb: String,
        /// The resource, for example `deployments.apps` or `pods/log`.
        resource: String,
        /// The name of the object. Empty for all objects.
        name: String,
        /// The namespace. For the cluster scope, it is the root namespace.
        namespace: String,
    },
    /// The rules for a user in the root namespace, for paths that are not resources (SelfSubjectRulesReview).
    Rules {
        /// The namespace.
        namespace: String,
    },
    /// Whether a node belongs to the virtual cluster.
    Node {
        /// The path and query of the request.
        target: String,
    },
    /// Whether the host serves the resource, and whether it is namespaced.
    Discovery {
        /// Whether the assumption is a guess.
        guessed: bool,
        /// Whether the resource is assumed to be namespaced.
        namespaced: bool,
    },
    /// The host's error for a request that is refused in any case (a dry run).
    DryRun {
        /// The method of the request.
        method: String,
        /// The path and query of the request.
        target: String,
    },
    /// The current object, on which the request depends.
    Live {
        /// The method of the request.
        method: String,
        /// The path and query of the request.
        target: String,
    },
}
