//! How to transform a response.

use std::sync::Arc;

use http::StatusCode;
use kube_wire::Status;
use kube_wire::selector::LabelSelector;
use rewrite::Program;
use rewrite::view::{Beginning, Filter};

use super::arrivals::Arrivals;
use super::mapped_frames::MappedFrames;
use super::namespaces::ListNamespaces;
use crate::seal::Seal;
use crate::translate::proxied::Proxied;
use crate::translate::review::ReviewAnswer;

/// How to transform a response of the host for the client.
pub(crate) enum ResponseTransform {
    /// Unchanged, unless it is a Status of a failure. For logs and discovery.
    Verbatim,
    /// Unchanged in all cases. For the response of a pod's server.
    Proxied(Proxied),
    /// One object. The cluster sees it only if the selector `only` matches its labels.
    Object { program: Program, filter: Filter, only: Option<LabelSelector> },
    /// A review with the host's answer.
    Review { program: Program, filter: Filter, answer: ReviewAnswer },
    /// A list, streamed. Its continue tokens are sealed for `token`. `counted` is whether the client sees all objects
    /// that the host returns.
    List { program: Program, filter: Filter, seal: Arc<Seal>, token: String, counted: bool, namespaces: ListNamespaces },
    /// A watch, frame by frame, with bookmarks if the client requests them. If a feed serves it, it shares `mapped_frames`
    /// with other watches.
    Watch {
        program: Program,
        filter: Filter,
        arrivals: Arrivals,
        bookmarks: Option<Beginning>,
        mapped_frames: Option<Arc<MappedFrames>>,
    },
}

// === impl ResponseTransform ===

impl ResponseTransform {
    /// Whether the response contains shared objects.
    pub(crate) fn is_of_shared(&self) -> bool {
        match self {
            Self::Object { filter, .. } | Self::List { filter, .. } | Self::Watch { filter, .. } => {
                *filter == Filter::Shared
            }
            Self::Verbatim | Self::Proxied(_) | Self::Review { .. } => false,
        }
    }

    /// Shares mapped frames with other watches, because a feed serves this watch.
    pub(crate) fn share(&mut self, frames: &Arc<MappedFrames>) {
        if let Self::Watch { mapped_frames, .. } = self {
            *mapped_frames = Some(Arc::clone(frames));
        }
    }

    /// Whether the engine must process a response with this status.
    pub(crate) fn looks_at(&self, status: StatusCode) -> bool {
        match self {
            Self::Proxied(_) => false,
            Self::Verbatim => !status.is_success(),
            _ => true,
        }
    }

    /// Seals the `continue` token of a failure. The response to an expired token has a new one, which continues with
    /// the current list (`handleCompactedErrorForPaging` in apiserver's `storage/etcd3/errors.go`).
    pub(super) fn sealed(&self, mut status: Status) -> Status {
        if let Self::List { seal, token, .. } = self
            && !status.metadata.continue_token.is_empty()
        {
            status.metadata.continue_token = seal.seal(&status.metadata.continue_token, token);
        }
        status
    }
}
