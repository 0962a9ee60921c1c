//! What a host is asked on the way.

/// One question, in the names of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// May this user do that? (SubjectAccessReview)
    Access {
        /// Who.
        user: String,
        /// What.
        verb: String,
        /// `deployments.apps`, `pods/log`.
        resource: String,
        /// Empty is all.
        name: String,
        /// Where: of the cluster scope the root namespace.
        namespace: String,
    },
    /// What may this user do in the root namespace? For paths that are no resources. (SelfSubjectRulesReview)
    Rules {
        /// Where.
        namespace: String,
    },
    /// Is this node one of the virtual cluster's?
    Node {
        /// The request.
        target: String,
    },
    /// Is this resource served, and is it in namespaces?
    Discovery {
        /// Whether that is only a guess.
        guessed: bool,
        /// What was assumed.
        namespaced: bool,
    },
    /// Would the host refuse this? A dry run, for its own words about a request that is refused anyway.
    DryRun {
        /// The request.
        method: String,
        /// Path and query.
        target: String,
    },
    /// What is there now? What is sent depends on it.
    Live {
        /// The request.
        method: String,
        /// Path and query.
        target: String,
    },
}
